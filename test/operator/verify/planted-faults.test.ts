import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareLog } from '../../../src/operator/verify/compare-log.ts';
import { repairDeliveries } from '../../../src/operator/verify/repair-deliveries.ts';
import { repairView } from '../../../src/operator/verify/repair-view.ts';
import { DeliverySide } from '../../../src/operator/verify/verify-deliveries.ts';
import { ViewSide } from '../../../src/operator/verify/verify-view.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import { projectEvent } from '../../../src/records/project-event.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { DAY_MS } from '../../support/agreement/verifying.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { queueOnMongo } from '../../support/deliveries/open-queue.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';
import { cancelled, confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';
import { viewInFolder, viewOnMongodb } from '../../support/transactions/open-view.ts';
import { showing } from '../../support/transactions/records.ts';

type Stores = ReturnType<typeof openPushStores>;
type Open = (stores: Stores) => { readonly view: TransactionsView; readonly queue: DeliveryQueue };

const AFTER_URL = '2026-09-03T08:00:00.000Z';
const BEFORE_URL = '2026-08-01T08:00:00.000Z';

const transactions = fc.uniqueArray(
  fc.record({
    id: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
    account: fc.constantFrom(7, 7, 7, 8),
    record: fc.constantFrom(confirmed, external),
    isOwed: fc.boolean(),
    end: fc.constantFrom(undefined, undefined, voided, cancelled),
    row: fc.constantFrom('right', 'right', 'right', 'gone', 'stale'),
    delivery: fc.constantFrom('right', 'right', 'right', 'gone', 'doubled'),
    /** `alone`: nothing was ever recorded of it. */
    events: fc.constantFrom('recorded', 'recorded', 'recorded', 'alone'),
  }),
  { minLength: 1, maxLength: 14, selector: ({ id }) => id },
);
type Planned = typeof transactions extends fc.Arbitrary<infer T> ? T : never;

async function findsExactly(open: Open, planned: Planned, blockSize: number): Promise<void> {
  const stores = openPushStores();
  const { store, clock, account, append, author } = stores;
  const { view, queue } = open(stores);
  await account(opened(), keyIssued(), webhookSet());
  const recorded = planned.filter(({ events }) => events === 'recorded');
  for (const { id, account: account_id, record, isOwed } of recorded) {
    await append(
      `transaction-${id}`,
      record(id, { account_id, created_at: isOwed ? AFTER_URL : BEFORE_URL }),
    );
  }
  for (const { id, account: account_id, end } of recorded) {
    if (end !== undefined) await append(`transaction-${id}`, end(id, { account_id }));
  }
  const { generation } = await view.reset('store', 0);
  const streams = await store.readStreams(recorded.map(({ id }) => `transaction-${id}`));
  await view.apply(streams.flat().map(projectEvent), { generation, position: await store.head() });

  const context = { store, queue, clock, environment: 'staging', retentionMs: 90 * DAY_MS } as const;
  const verify = async () => {
    const rows = new ViewSide({ store, view });
    const deliveries = new DeliverySide({ ...context, logStartedAtMs: 0 });
    await compareLog([rows, deliveries], { store, view: () => view, blockSize, settleMs: 0 });
    return { rows: rows.agreement, deliveries: deliveries.agreement };
  };
  const rowFaults: string[] = [];
  const missing: string[] = [];
  const surplus: string[] = [];
  const stored: NewDelivery[] = [];
  const delivery = (id: number, overrides: Partial<NewDelivery>): NewDelivery =>
    newDelivery(0, { prefix: PREFIX, transactionId: id, occurredAtMs: clock.now(), ...overrides });
  for (const { id, account: accountId, isOwed, end, row, delivery: fault, events } of planned) {
    const isShown = events === 'recorded' && end === undefined;
    if (row === 'gone') await view.replace(id, []);
    if (row === 'stale') await view.replace(id, [showing({ id, accountId })]);
    if (row === 'gone' && isShown) rowFaults.push(`${id} missing`);
    if (row === 'stale') rowFaults.push(`${id} ${isShown ? 'differing' : 'surplus'}`);
    const own = deliveryId(PREFIX, id);
    const isRight = events === 'recorded' && accountId === 7 && isOwed;
    if (fault !== 'gone' && isRight) stored.push(delivery(id, { id: own, accountId }));
    if (fault === 'gone' && isRight) missing.push(own);
    if (fault !== 'doubled') continue;
    const second = deliveryId('zzzzzzzzzz', id);
    stored.push(delivery(id, { id: second, accountId, prefix: 'klmnopqrst' }));
    surplus.push(second);
  }
  await queue.enqueue(stored);

  const found = await verify();
  expect(found.rows.differences.map(({ transactionId, kind }) => `${transactionId} ${kind}`).sort()).toEqual(
    rowFaults.sort(),
  );
  expect(found.rows.checked).toBe(recorded.length);
  expect(found.deliveries.missing.map(({ id }) => id).sort()).toEqual(missing.sort());
  expect(found.deliveries.surplus.map(({ id }) => id).sort()).toEqual(surplus.sort());
  const owed = recorded.filter(({ account: accountId, isOwed }) => accountId === 7 && isOwed);
  expect(found.deliveries.owed).toBe(owed.length);

  expect(await repairView(found.rows.differences, { store, view, clock, author })).toEqual([]);
  await repairDeliveries(found.deliveries.missing, { newLog: false }, { ...context, author });
  const again = await verify();
  expect(again.rows.differences).toEqual([]);
  expect(again.deliveries.missing).toEqual([]);
  expect(again.deliveries.surplus.map(({ id }) => id).sort()).toEqual(surplus.sort());
}

function property(open: Open, numRuns: number): Promise<void> {
  const blocks = fc.integer({ min: 1, max: 6 });
  return fc.assert(
    fc.asyncProperty(transactions, blocks, (planned, blockSize) => findsExactly(open, planned, blockSize)),
    { numRuns },
  );
}

describe('whatever was recorded and whatever is wrong', () => {
  test('a verification finds exactly that, and a repair leaves only surplus deliveries', async () => {
    await property(({ folder, clock, openQueue }) => {
      return { view: viewInFolder(folder, clock), queue: openQueue() };
    }, 20);
  });
});

describeWithMongodb('whatever was recorded and whatever is wrong, on MongoDB', () => {
  test('a verification finds exactly that', async () => {
    await property(({ clock }) => {
      const connection = mongodb();
      return {
        view: viewOnMongodb(connection, clock),
        queue: queueOnMongo({ connection, clock }),
      };
    }, 4);
  });
});
