import { describe, expect, test } from 'vitest';
import { changeAccount } from '../../../src/accounts/change-account.ts';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import { issueKey } from '../../../src/operator/keys/issue-key.ts';
import { setWebhook, type WebhookOptions } from '../../../src/operator/keys/set-webhook.ts';
import { createNameLookup } from '../../../src/push/sender/name-lookup.ts';
import { KEY, keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';

const masterKeys = new MasterKeys([Buffer.alloc(32, 1)]);
const SECRET = /^[A-Za-z0-9]{43}$/;

/** Names that resolve: others do not. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  'public.example': ['203.0.114.5', '2606:4700::1111'],
  'mixed.example': ['203.0.114.5', '10.0.0.1'],
};

async function start() {
  const stores = openPushStores();
  const { store, clock, author } = stores;
  await stores.account(opened(), keyIssued());
  const writer = { store, clock, author };
  const resolve = async (name: string) => ADDRESSES[name] ?? [];
  const options = (url: string, allowPrivate = false): WebhookOptions => ({
    url,
    allowPrivate,
    masterKeys,
    names: createNameLookup({ resolve }),
  });
  const set = (url: string, allowPrivate = false) => setWebhook(writer, KEY, options(url, allowPrivate));
  return { ...stores, writer, options, set };
}

describe('setting a webhook URL', () => {
  test('generates a secret once, and returns it only then', async () => {
    const { set, writer } = await start();
    const first = await set('https://public.example/a');
    expect(first).toMatchObject({
      changed: true,
      webhookSecret: expect.stringMatching(SECRET),
      warning: null,
    });
    expect(await set('https://public.example/b')).toMatchObject({ changed: true, webhookSecret: null });
    expect(await set('https://public.example/b')).toMatchObject({ changed: false, webhookSecret: null });
    await changeAccount(writer, 7, [{ type: 'RemoveWebhook', ...KEY }]);
    const again = await set('https://public.example/c');
    expect(again.webhookSecret).toBeNull();
    const stored = again.account.keys.get(PREFIX)?.webhookSecret;
    expect(stored && masterKeys.decryptSecret(PREFIX, stored)).toBe(first.webhookSecret);
  });

  test('takes a name that does not resolve now, with a warning', async () => {
    const { set } = await start();
    const warning = expect.stringContaining('nowhere.example does not resolve at present');
    expect(await set('https://nowhere.example/')).toMatchObject({ changed: true, warning });
  });

  test('takes an address as it is, and a name with a dot behind it as the name', async () => {
    const { set } = await start();
    for (const url of ['https://203.0.114.5/', 'https://[2606:4700::1111]/', 'https://public.example./']) {
      expect(await set(url)).toMatchObject({ changed: true, warning: null });
    }
    expect(await set('https://10.0.0.1/', true)).toMatchObject({ changed: true, warning: null });
  });

  test('refuses a name with one forbidden address among its own, unless private ones are allowed', async () => {
    const { set } = await start();
    await expect(set('https://mixed.example/')).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('mixed.example resolves to 10.0.0.1'),
    });
    await expect(set('https://mixed.example./')).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await set('https://mixed.example/', true)).toMatchObject({ changed: true, warning: null });
  });

  test('refuses what may not be called by its form, and records nothing', async () => {
    const { set, store } = await start();
    for (const url of [
      'http://public.example/',
      'https://127.0.0.1/',
      'https://public.example:8443/',
      'no URL',
    ]) {
      await expect(set(url)).rejects.toMatchObject({ code: 'REFUSED' });
    }
    expect(await store.readStream('account-7')).toHaveLength(2);
  });
});

test('a key that is issued with a webhook URL is checked in the same way, and not issued where the URL is refused', async () => {
  const { writer, options, store } = await start();
  const request = {
    accountId: 7,
    environment: 'staging',
    label: null,
    allowList: [],
    rateLimit: 60,
    driverMobile: false,
  } as const;
  const refused = issueKey(writer, { ...request, webhook: options('https://mixed.example/') });
  await expect(refused).rejects.toMatchObject({ code: 'REFUSED' });
  expect(await store.readStream('account-7')).toHaveLength(2);
  const issued = await issueKey(writer, { ...request, webhook: options('https://nowhere.example/') });
  expect(issued).toMatchObject({ webhookSecret: expect.stringMatching(SECRET), warning: expect.any(String) });
});
