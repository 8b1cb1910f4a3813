import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { identifyCaller } from '../../src/accounts/caller.ts';
import { generateKey } from '../../src/accounts/key-text.ts';
import type { Environment } from '../../src/domain/account-events.ts';
import { accessOf } from '../support/accounts/access-of.ts';
import { AccountModel } from '../support/accounts/account-model.ts';
import { keyIssued, opened } from '../support/accounts/account-samples.ts';

const staging = generateKey('staging');
const production = generateKey('production');

function accounts(): AccountModel {
  const events = [opened(), ...[staging, production].map(issued)];
  const found = new AccountModel();
  for (const [revision, event] of events.entries()) {
    const decoded = { ok: true, event, atMs: 0 } as const;
    found.apply({ position: revision + 1, stream: 'account-7', revision, decoded });
  }
  return found;
}

function issued({ key, prefix, secretSha256 }: typeof staging) {
  const environment = key.startsWith('svc_live_') ? 'production' : 'staging';
  return keyIssued({ prefix, environment, secret_sha256: secretSha256 });
}

const identify = (presented: string | undefined, environment: Environment = 'staging') =>
  identifyCaller(presented, { accounts: accessOf(accounts()), environment });

describe('a caller', () => {
  test.each([
    ['staging', staging],
    ['production', production],
  ] as const)(
    'who presents a key of this deployment is known and proven: %s',
    async (environment, { key, prefix }) => {
      expect(await identify(key, environment)).toEqual({
        prefix,
        known: expect.objectContaining({ key: expect.objectContaining({ prefix }) }),
        proven: true,
        countingId: createHash('sha256').update(key).digest('base64url'),
      });
    },
  );

  test.each([
    ['production', staging],
    ['staging', production],
  ] as const)('of the other environment is unknown in %s', async (environment, { key, prefix }) => {
    expect(await identify(key, environment)).toEqual({
      prefix,
      known: undefined,
      proven: false,
      countingId: '',
    });
  });

  test('who names the other environment before a known prefix is unknown', async () => {
    const renamed = staging.key.replace('svc_test_', 'svc_live_');
    for (const environment of ['staging', 'production'] as const) {
      expect(await identify(renamed, environment)).toMatchObject({ known: undefined, proven: false });
    }
  });

  test.each(['', 'x', 'y'.repeat(43), 'z'.repeat(5_000)])(
    'with a wrong secret is known but not proven',
    async (secret) => {
      const presented = `svc_test_${staging.prefix}_${secret}`;
      const caller = await identify(presented);
      expect(caller).toMatchObject({ prefix: staging.prefix, proven: false });
      expect(caller.known?.key.prefix).toBe(staging.prefix);
      expect(caller.countingId).not.toBe((await identify(staging.key)).countingId);
      expect(caller.countingId).not.toBe('');
    },
  );

  test('is counted by the whole key, of which nothing can be read back', async () => {
    const { countingId } = await identify(staging.key);
    expect((await identify(staging.key)).countingId).toBe(countingId);
    expect(countingId).not.toContain(staging.prefix);
    const wrong = ['a', 'b'].map((secret) => identify(`svc_test_${staging.prefix}_${secret}`));
    expect(new Set((await Promise.all(wrong)).map((each) => each.countingId)).size).toBe(2);
  });

  test('with an unknown prefix is named by it, and is not counted', async () => {
    expect(await identify(`svc_test_zzzzzzzzzz_${'s'.repeat(43)}`)).toEqual({
      prefix: 'zzzzzzzzzz',
      known: undefined,
      proven: false,
      countingId: '',
    });
  });

  test.each([
    undefined,
    '',
    'key',
    `Bearer ${staging.key}`,
    ` ${staging.key}`,
    staging.key.replace('_test_', '_demo_'),
    staging.key.toUpperCase(),
    `svc_test_${staging.prefix}`,
    `svc_test_${staging.prefix}x_secret`,
    `svc_test_${staging.prefix.slice(1)}_secret`,
    `svc_test_${staging.prefix}_a\nb`,
  ])('who presents something else is nobody: %j', async (presented) => {
    expect(await identify(presented)).toEqual({
      prefix: undefined,
      known: undefined,
      proven: false,
      countingId: '',
    });
  });
});
