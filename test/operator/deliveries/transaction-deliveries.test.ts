import { expect, test } from 'vitest';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { transactionDeliveries } from '../../../src/operator/deliveries/transaction-deliveries.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';

const DAY_MS = 86_400_000;
const OTHER = 'bbbbbbbbbb';
const THIRD = 'cccccccccc';
const CREATED = { created_at: '2026-09-03T08:00:00.000Z' };

/** Three keys: one with a webhook, one with a disabled one, one without. */
async function start() {
  const stores = openPushStores();
  const { store, clock, append } = stores;
  const queue = stores.openQueue();
  await stores.account(
    opened(),
    keyIssued(),
    webhookSet(),
    keyIssued({ prefix: OTHER }),
    webhookSet({ prefix: OTHER }),
    { ...onKey('WebhookDisabled'), data: { ...onKey('WebhookDisabled').data, prefix: OTHER } } as never,
    keyIssued({ prefix: THIRD }),
  );
  const show = async (transactionId: number) =>
    transactionDeliveries(transactionId, await store.readStream(`transaction-${transactionId}`), {
      store,
      queue,
      clock,
      environment: 'staging',
      retentionMs: 90 * DAY_MS,
    });
  const record = (id: number) => append(`transaction-${id}`, confirmed(id, CREATED));
  return { ...stores, queue, show, record };
}

const OTHERS = [
  { key: OTHER, reason: 'the webhook is disabled: 50 failed' },
  { key: THIRD, reason: 'the key has no webhook' },
];

test('a transaction shows its deliveries, and every other key of the account with the reason', async () => {
  const { show, record, queue } = await start();
  await record(501);
  await queue.enqueue([newDelivery(501, { prefix: PREFIX }), newDelivery(502, { prefix: PREFIX })]);
  const shown = await show(501);
  expect(shown.deliveries).toMatchObject([{ prefix: PREFIX, transactionId: 501, state: 'pending' }]);
  expect(shown.notSent).toEqual(OTHERS);
});

test('what is owed and not queued yet is said to be so', async () => {
  const { show, record } = await start();
  await record(501);
  expect(await show(501)).toEqual({
    deliveries: [],
    notSent: [...OTHERS, { key: PREFIX, reason: 'it is owed and not queued yet' }],
  });
});

test('the reasons are those of the moment of the transaction, whatever happened since', async () => {
  const { show, record, account } = await start();
  await record(501);
  await account(onKey('KeySwitchedOff'), webhookSet({ prefix: THIRD }));
  await record(502);
  expect((await show(501)).notSent).toContainEqual({ key: PREFIX, reason: 'it is owed and not queued yet' });
  expect((await show(501)).notSent).toContainEqual(OTHERS[1]);
  expect((await show(502)).notSent).toContainEqual({ key: PREFIX, reason: 'the key is switched off' });
  expect((await show(502)).notSent).toContainEqual({ key: THIRD, reason: 'it is owed and not queued yet' });
});

test('a key that got a delivery is not among those that got none, whatever is decided today', async () => {
  const { show, record, queue, clock } = await start();
  await record(501);
  await queue.enqueue([newDelivery(501, { prefix: PREFIX }), newDelivery(501, { prefix: OTHER })]);
  clock.advance(91 * DAY_MS);
  const shown = await show(501);
  expect(shown.deliveries.map(({ prefix }) => prefix).sort()).toEqual([PREFIX, OTHER].sort());
  expect(shown.notSent.map(({ key }) => key)).toEqual([THIRD]);
});

test('a voided transaction is judged by its first event, as is an external one', async () => {
  const { show, record, append } = await start();
  await record(501);
  await append('transaction-501', voided(501));
  await append('transaction-502', external(502, CREATED));
  expect((await show(501)).notSent).toHaveLength(3);
  expect((await show(502)).notSent).toHaveLength(3);
});

test('the time at which it was recorded is that of its metadata, which a copy keeps', async () => {
  const { show, store, author, clock } = await start();
  for (const [id, agoMs] of [
    [501, 90 * DAY_MS],
    [502, 90 * DAY_MS + 1],
  ] as const) {
    const event = confirmed(id, CREATED) as unknown as Parameters<typeof newEvent>[0];
    const events = [newEvent(event, author, clock.now() - agoMs)];
    await store.append([{ stream: `transaction-${id}`, expected: 'none', events }]);
  }
  expect((await show(501)).notSent).toContainEqual({ key: PREFIX, reason: 'it is owed and not queued yet' });
  expect((await show(502)).notSent).toContainEqual({
    key: PREFIX,
    reason: 'the transaction was recorded longer ago than the delivery log is kept',
  });
});

test('of what cannot be judged the deliveries are shown all the same, and no reasons', async () => {
  const { show, record, append, queue, account } = await start();
  await append('transaction-501', { type: 'TransactionConfirmed', data: { transaction_id: 501 } });
  await append('transaction-502', voided(502));
  await account({ type: 'AccountFrozen', data: { account_id: 7 } } as never);
  await record(503);
  await queue.enqueue([501, 502, 503, 504].map((n) => newDelivery(n, { prefix: PREFIX })));
  for (const id of [501, 502, 503, 504]) {
    expect(await show(id)).toMatchObject({ deliveries: [{ transactionId: id }], notSent: [] });
  }
});
