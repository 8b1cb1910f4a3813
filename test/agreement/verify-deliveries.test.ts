import { describe, expect, test } from 'vitest';
import { repairDeliveries } from '../../src/agreement/repair-deliveries.ts';
import { type VerifyDeliveriesOptions, verifyDeliveries } from '../../src/agreement/verify-deliveries.ts';
import type { DeliveryQueue } from '../../src/deliveries/queue/delivery-queue.ts';
import { readStartedLog } from '../../src/deliveries/delivery-log.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { confirmed, external, voided } from '../support/transactions/e2e-samples.ts';

const DAY_MS = 86_400_000;
const AFTER_URL = { created_at: '2026-09-03T08:00:00.000Z' };

async function start() {
  const stores = openPushStores();
  const { store, clock, append, author } = stores;
  const queue = stores.openQueue();
  await stores.account(opened(), keyIssued(), webhookSet());
  const verify = (overrides: Partial<VerifyDeliveriesOptions> = {}) =>
    verifyDeliveries({
      store,
      queue,
      clock,
      environment: 'staging',
      retentionMs: 90 * DAY_MS,
      logStartedAtMs: clock.now() - 60_000,
      settleMs: 0,
      ...overrides,
    });
  return {
    ...stores,
    queue,
    verify,
    confirm: (id: number, data: object = {}) =>
      append(`transaction-${id}`, confirmed(id, { ...AFTER_URL, ...data })),
    /** Stores what is missing; says how many. */
    async repair(into: DeliveryQueue = queue, newLog = false): Promise<number> {
      const { missing } = await verify({ queue: into });
      await repairDeliveries(missing, { newLog }, { store, queue: into, clock, author });
      return missing.length;
    },
  };
}

describe('verifying deliveries', () => {
  test('names what is owed and not in the log, which repairing stores, due at once', async () => {
    const { append, confirm, verify, repair, queue, clock } = await start();
    await confirm(1);
    await append('transaction-2', external(2, AFTER_URL));
    expect(await verify()).toMatchObject({
      owed: 2,
      missing: [{ transactionId: 1 }, { transactionId: 2 }],
      surplus: [],
    });
    expect(await repair()).toBe(2);
    const agreement = await verify();
    expect(agreement).toMatchObject({ owed: 2, missing: [], surplus: [], notJudged: 0 });
    expect(agreement.states).toEqual({ pending: 2, held: 0, delivered: 0, failed: 0, withdrawn: 0 });
    expect(await queue.nextDueAtMs()).toBeLessThanOrEqual(clock.now());
    expect(await repair()).toBe(0);
  });

  test('finds nothing owed where the fan-out would send nothing', async () => {
    const { account, confirm, verify } = await start();
    await confirm(1, { created_at: '2026-08-31T23:59:59.999Z' }); // before the URL was set
    await account(onKey('WebhookDisabled'));
    await confirm(2);
    await account(onKey('WebhookEnabled'), onKey('KeySwitchedOff'));
    await confirm(3);
    await account(onKey('KeySwitchedOn'));
    await confirm(4);
    expect(await verify()).toMatchObject({ owed: 1, missing: [{ transactionId: 4, prefix: PREFIX }] });
  });

  test('decides as of the event: what was owed then stays owed', async () => {
    const { account, confirm, verify } = await start();
    await confirm(1);
    await account(onKey('WebhookRemoved'));
    expect(await verify()).toMatchObject({ owed: 1 });
  });

  test('names what is in the log and not owed', async () => {
    const { confirm, verify, repair, queue } = await start();
    await confirm(1);
    await repair();
    const delivery = await queue.find((await queue.list({}, { limit: 1 }))[0]?.id ?? '');
    if (delivery === undefined) throw new Error('nothing was stored');
    await queue.enqueue([{ ...delivery, id: 'surplus', transactionId: 99 }]);
    expect(await verify()).toMatchObject({ owed: 1, surplus: [{ id: 'surplus', transactionId: 99 }] });
  });

  test('takes no offence at deliveries of an erased transaction', async () => {
    const { confirm, verify, repair, store } = await start();
    await confirm(1);
    await repair();
    await store.erase('transaction-1');
    expect(await verify()).toMatchObject({ owed: 0, missing: [], surplus: [] });
  });

  test('repairs a voided transaction as withdrawn: it is never sent', async () => {
    const { confirm, append, verify, repair } = await start();
    await confirm(1);
    await append('transaction-1', voided(1));
    await repair();
    expect((await verify()).states).toMatchObject({ pending: 0, withdrawn: 1 });
  });

  test('does not judge what was recorded beyond the retention, or before the log began', async () => {
    const { confirm, verify, clock } = await start();
    await confirm(1);
    clock.advance(2 * DAY_MS);
    await confirm(2);
    const dayOld = { logStartedAtMs: 0, retentionMs: DAY_MS };
    expect(await verify(dayOld)).toMatchObject({ owed: 1, missing: [{ transactionId: 2 }], notJudged: 1 });
    expect(await verify({ logStartedAtMs: clock.now() })).toMatchObject({ owed: 1, notJudged: 1 });
  });

  test('judges only what is asked for: one account, or what was recorded in a time', async () => {
    const { confirm, verify, clock, repair } = await start();
    await confirm(1);
    await repair();
    clock.advance(1_000);
    const sinceMs = clock.now();
    await confirm(2);
    expect(await verify({ sinceMs })).toMatchObject({
      owed: 1,
      missing: [{ transactionId: 2 }],
      surplus: [],
    });
    expect(await verify({ untilMs: sinceMs - 1 })).toMatchObject({ owed: 1, missing: [], surplus: [] });
    expect(await verify({ accountId: 8 })).toMatchObject({ owed: 0, missing: [], surplus: [], notJudged: 0 });
  });

  test('leaves an account that can not be read unjudged', async () => {
    const { confirm, verify, append, repair } = await start();
    await confirm(1);
    await repair();
    await append('account-7', { type: 'AccountRenamed', data: {} });
    await confirm(2);
    expect(await verify()).toMatchObject({ owed: 1, missing: [], surplus: [], notJudged: 1 });
  });
});

test('a rebuilt log takes the place of the lost one, with its withdrawals, on record', async () => {
  const { confirm, append, repair, openQueue, store, verify } = await start();
  await confirm(1);
  await confirm(2);
  await append('transaction-2', voided(2));
  const lost = openQueue();
  const data = { log_id: (await lost.logId()).id, started_at: '2026-09-01T00:00:00Z' };
  await append('operations', { type: 'DeliveryLogStarted', data });
  const rebuilt = openQueue('rebuilt.db');
  await repair(rebuilt, true);
  expect((await verify({ queue: rebuilt })).states).toMatchObject({ pending: 1, withdrawn: 1 });
  expect(await readStartedLog(store)).toEqual({
    id: (await rebuilt.logId()).id,
    firstStartedAtMs: Date.parse('2026-09-01T00:00:00Z'),
  });
  const types = (await store.readStream('operations')).map(({ type }) => type);
  expect(types.slice(-2)).toEqual(['DeliveryLogStarted', 'AgreementRepaired']);
});
