import { describe, expect, test } from 'vitest';
import { identifyCaller } from '../../../src/accounts/caller.ts';
import { generateKey, matches } from '../../../src/accounts/key-text.ts';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import { formatDateTime } from '../../../src/domain/values/date-time.ts';
import { issueKey, type KeyRequest } from '../../../src/operator/keys/issue-key.ts';
import { createNameLookup } from '../../../src/push/sender/name-lookup.ts';
import { accessOf } from '../../support/accounts/access-of.ts';
import { modelOf } from '../../support/accounts/account-model.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { parseKey } from '../../support/accounts/parse-key.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';

const masterKeys = new MasterKeys([Buffer.alloc(32, 1)]);
const request: KeyRequest = {
  accountId: 7,
  environment: 'staging',
  label: null,
  allowList: [],
  rateLimit: 60,
  driverMobile: false,
  webhook: null,
};

async function start() {
  const { store, clock, author, account } = openPushStores();
  await account(opened());
  const names = createNameLookup({ resolve: async () => ['203.0.114.5'] });
  const webhook = { url: 'https://public.example/hook', allowPrivate: false, masterKeys, names };
  const issue = (wishes: Partial<KeyRequest> = {}) =>
    issueKey({ store, clock, author }, { ...request, ...wishes });
  return { store, clock, webhook, issue };
}

describe('an issued key', () => {
  test.each([
    { ...request, environment: 'production', label: 'ERP', allowList: ['203.0.113.0/24'] },
    { ...request, environment: 'staging', rateLimit: 300, driverMobile: true },
  ] as const)('is what was asked for: $environment', async (wished) => {
    const { store, issue } = await start();
    const { key, prefix, webhookSecret, warning } = await issue(wished);
    expect(parseKey(key)).toMatchObject({ environment: wished.environment, prefix });
    expect([webhookSecret, warning]).toEqual([null, null]);
    const accounts = await modelOf(store);
    const { webhook: _, accountId, ...rest } = wished;
    expect(accounts.key(prefix)).toMatchObject({
      entry: { id: accountId },
      key: { ...rest, active: true, webhook: null },
    });
    const { environment } = wished;
    const caller = await identifyCaller(key, { accounts: accessOf(accounts), environment });
    expect(caller).toMatchObject({ prefix, proven: true });
  });

  test('with a webhook has it from that moment on, and its secret is told this one time', async () => {
    const { store, clock, webhook, issue } = await start();
    const { key, prefix, webhookSecret, warning } = await issue({ webhook });
    expect(warning).toBeNull();
    const issued = (await modelOf(store)).key(prefix)?.key;
    expect(issued?.webhook).toEqual({
      url: webhook.url,
      setAtMs: clock.now(),
      disabled: null,
      ratePerSecond: null,
    });
    expect(issued?.webhookSecret && masterKeys.decryptSecret(prefix, issued.webhookSecret)).toBe(
      webhookSecret,
    );
    const stored = JSON.stringify(await store.readStream('account-7'));
    expect(stored).not.toContain(webhookSecret);
    expect(stored).not.toContain(parseKey(key)?.secret);
    expect(stored).toContain(formatDateTime(clock.now()));
  });

  test('is recorded in one step: where it is refused, neither key nor webhook is', async () => {
    const { store, webhook, issue } = await start();
    await expect(issue({ environment: 'production', webhook })).rejects.toMatchObject({ code: 'REFUSED' });
    await expect(issue({ accountId: 8, webhook })).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await store.readStream('account-7')).toHaveLength(1);
    expect(await store.readStream('account-8')).toEqual([]);
  });
});

describe('the text of a key', () => {
  test('is a new one each time, prefix and secret', () => {
    const keys = Array.from({ length: 50 }, () => generateKey('staging'));
    expect(new Set(keys.map(({ prefix }) => prefix)).size).toBe(50);
    expect(new Set(keys.map(({ key }) => parseKey(key)?.secret)).size).toBe(50);
  });

  test('may have every letter and digit in its prefix, each about as likely as any other', () => {
    const counts = new Map<string, number>();
    const drawn = Array.from({ length: 2_000 }, () => generateKey('staging').prefix).join('');
    for (const character of drawn) counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).toBe(36);
    for (const count of counts.values()) expect(Math.abs(count - drawn.length / 36)).toBeLessThan(180);
  });

  test('is stored as the SHA-256 of its secret alone', () => {
    const { key, secretSha256 } = generateKey('production');
    expect(secretSha256).toMatch(/^[0-9a-f]{64}$/);
    expect(matches(parseKey(key)?.secret ?? '', secretSha256)).toBe(true);
    expect(matches(key, secretSha256)).toBe(false);
  });
});
