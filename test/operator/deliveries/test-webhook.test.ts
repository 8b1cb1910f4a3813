import { expect, test } from 'vitest';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { testWebhook } from '../../../src/operator/deliveries/test-webhook.ts';
import { signature } from '../../../src/push/message/envelope.ts';
import type { SendRequest } from '../../../src/push/sender/timed-send.ts';
import {
  KEY,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { answered, SUCCESS } from '../../support/deliveries/deliveries.ts';
import { sentIn } from '../../support/deliveries/push.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';

const SECRET = 'S'.repeat(43);
const masterKeys = new MasterKeys([Buffer.alloc(32, 1)]);
const integration = (type: 'IntegrationEnabled' | 'IntegrationDisabled'): AccountEvent => ({
  type,
  data: { account_id: 7 },
});

async function start() {
  const stores = openPushStores();
  const { store, clock, author } = stores;
  await stores.account(
    opened(),
    integration('IntegrationEnabled'),
    profileSet('2026-01-01T00:00:00.000Z', null),
    keyIssued(),
    webhookSet({ secret: masterKeys.encryptSecret({ prefix: PREFIX, secret: SECRET }) }),
  );
  const sent: SendRequest[] = [];
  const run = (outcome = SUCCESS) =>
    testWebhook(
      {
        writer: { store, clock, author },
        masterKeys,
        sender: {
          async send(request) {
            sent.push(request);
            return sentIn(12, outcome);
          },
        },
      },
      KEY,
    );
  const requests = async () =>
    (await store.readStream('account-7')).filter(({ type }) => type === 'WebhookTestRequested');
  return { ...stores, sent, run, requests };
}

test('a test is recorded, sent once, signed with the secret, and its answer returned', async () => {
  const { run, sent, requests, clock } = await start();
  const result = await run();
  expect(result).toMatchObject({ url: 'https://example.com/hook', outcome: SUCCESS, durationMs: 12 });
  expect(await requests()).toMatchObject([
    { data: { prefix: PREFIX, delivery_id: result.deliveryId }, metadata: { actor: 'test' } },
  ]);
  expect(sent).toHaveLength(1);
  const [{ url, headers, body } = { url: '', headers: {} as Record<string, string>, body: '{}' }] = sent;
  expect(url).toBe('https://example.com/hook');
  expect(JSON.parse(body)).toEqual({
    id: result.deliveryId,
    type: 'webhook.test',
    created_at: new Date(clock.now()).toISOString(),
    api_version: '2026-09-01',
    data: {},
  });
  expect(headers['X-Service-Signature']).toBe(signature({ secret: SECRET, body, atMs: clock.now() }));
});

test('a test that fails is not repeated, and each test has a new id', async () => {
  const { run, sent, requests } = await start();
  const [first, second] = [await run(answered(500)), await run(answered(500))];
  expect(first.outcome).toEqual(answered(500));
  expect(first.deliveryId).not.toBe(second.deliveryId);
  expect(sent).toHaveLength(2);
  expect((await requests()).map(({ type }) => type)).toEqual([
    'WebhookTestRequested',
    'WebhookTestRequested',
  ]);
});

test.each([
  ['the key is off', [onKey('KeySwitchedOff')]],
  ['the webhook was removed', [onKey('WebhookRemoved')]],
  ['the webhook is disabled', [onKey('WebhookDisabled')]],
  ['the integration is off', [integration('IntegrationDisabled')]],
  ['the charging profile is over', [profileSet('2026-01-01T00:00:00.000Z', '2026-09-03T08:00:00.000Z')]],
] as const)('nothing is sent nor recorded while %s', async (_, events) => {
  const { run, sent, requests, account } = await start();
  await account(...events);
  await expect(run()).rejects.toMatchObject({ code: 'REFUSED' });
  expect(sent).toEqual([]);
  expect(await requests()).toEqual([]);
});
