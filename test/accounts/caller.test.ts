import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { identifyCaller } from '../../src/accounts/caller.ts';
import { Directory } from '../../src/accounts/directory/fold/directory.ts';
import { generateKey } from '../../src/accounts/key-text.ts';
import type { Environment } from '../../src/domain/account-events.ts';
import { keyIssued, opened } from '../support/accounts/account-samples.ts';

const staging = generateKey('staging');
const production = generateKey('production');

function directory(): Directory {
  const events = [opened(), ...[staging, production].map(issued)];
  const found = new Directory();
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
  identifyCaller(presented, { directory: directory(), environment });

describe('a caller', () => {
  test.each([
    ['staging', staging],
    ['production', production],
  ] as const)(
    'who presents a key of this deployment is known and proven: %s',
    (environment, { key, prefix }) => {
      expect(identify(key, environment)).toEqual({
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
  ] as const)('of the other environment is unknown in %s', (environment, { key, prefix }) => {
    expect(identify(key, environment)).toEqual({ prefix, known: undefined, proven: false, countingId: '' });
  });

  test('who names the other environment before a known prefix is unknown', () => {
    const renamed = staging.key.replace('svc_test_', 'svc_live_');
    for (const environment of ['staging', 'production'] as const) {
      expect(identify(renamed, environment)).toMatchObject({ known: undefined, proven: false });
    }
  });

  test.each(['', 'x', 'y'.repeat(43), 'z'.repeat(5_000)])(
    'with a wrong secret is known but not proven',
    (secret) => {
      const presented = `svc_test_${staging.prefix}_${secret}`;
      const caller = identify(presented);
      expect(caller).toMatchObject({ prefix: staging.prefix, proven: false });
      expect(caller.known?.key.prefix).toBe(staging.prefix);
      expect(caller.countingId).not.toBe(identify(staging.key).countingId);
      expect(caller.countingId).not.toBe('');
    },
  );

  test('is counted by the whole key, of which nothing can be read back', () => {
    expect(identify(staging.key).countingId).toBe(identify(staging.key).countingId);
    expect(identify(staging.key).countingId).not.toContain(staging.prefix);
    const ids = ['a', 'b'].map((secret) => identify(`svc_test_${staging.prefix}_${secret}`).countingId);
    expect(new Set(ids).size).toBe(2);
  });

  test('with an unknown prefix is named by it, and is not counted', () => {
    expect(identify(`svc_test_zzzzzzzzzz_${'s'.repeat(43)}`)).toEqual({
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
  ])('who presents something else is nobody: %j', (presented) => {
    expect(identify(presented)).toEqual({
      prefix: undefined,
      known: undefined,
      proven: false,
      countingId: '',
    });
  });
});
