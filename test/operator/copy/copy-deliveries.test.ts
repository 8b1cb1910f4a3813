import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { copyDeliveries, nameLog, relocated } from '../../../src/operator/copy/copy-deliveries.ts';
import { DELIVERIES, LANES, type StoredRow, WITHDRAWALS } from '../../../src/push/log/tables.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { TablePlan } from '../../../src/tables/plan.ts';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import {
  answered,
  claimFrom,
  claimOptions,
  failed,
  newDelivery,
} from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import { queueInFile } from '../../support/deliveries/open-queue.ts';
import { PushMachine, READY } from '../../support/deliveries/push.ts';
import { record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  copyFrom,
  type EmbeddedEnd,
  logOf,
  newEnd,
  openEnd,
  recordTransactions,
} from '../../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

async function logged(end: EmbeddedEnd, ids: readonly number[]): Promise<void> {
  await end.queue.enqueue(ids.map((id) => newDelivery(id)));
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const idOf = (transactionId: number) => deliveryId(PREFIX, transactionId);

async function withEnds(
  folders: readonly [string, string],
  work: (source: EmbeddedEnd, target: EmbeddedEnd) => Promise<void>,
  clock?: Clock,
): Promise<void> {
  const [source, target] = [openEnd(folders[0], clock), openEnd(folders[1], clock)];
  await work(source, target);
  await Promise.all([source.close(), target.close()]);
}

async function machineIn(folder: string): Promise<PushMachine> {
  const path = join(folder, 'deliveries.db');
  const machine = new PushMachine(folder, (clock) => queueInFile({ path, clock }));
  onTestFinished(() => machine.close());
  return machine;
}

async function systemEvents(store: EmbeddedEnd['store'], count: number): Promise<void> {
  const event = () => ({ id: crypto.randomUUID(), type: '$stats', data: {}, metadata: {} as never });
  await store.append([{ stream: '$stats', expected: 'any', events: Array.from({ length: count }, event) }]);
}

test('a webhooks role on the copy receives every event and attempts only what had not ended', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  await storeIdentity(before.store, before.clock);
  before.start();
  await before.account(...READY);
  await before.push(500); // will be purged by the time of the copy
  await before.clock.advance(1_000);
  await before.clock.jump(100 * DAY_MS);
  const purge = { kind: 'purge', retentionMs: 90 * DAY_MS, limit: 10 } as const;
  expect(await before.queue.change(purge, before.clock.now())).toBe(1);
  await before.push(501); // delivered
  await before.clock.advance(1_000);
  before.sender.answer = () => ({ outcome: answered(503), afterMs: 5 });
  await before.push(502); // will have failed
  await before.clock.advance(200_000);
  await before.push(503); // failed once, due again
  await before.clock.advance(100);
  await before.push(504);
  await before.clock.advance(100);
  await before.fan(await before.void(504)); // withdrawn
  await before.account({ type: 'IntegrationDisabled', data: { account_id: 7 } });
  await before.push(505); // held
  await before.clock.advance(100);
  before.kill();

  const copied = async (source: EmbeddedEnd, target: EmbeddedEnd): Promise<void> => {
    await systemEvents(target.store, 1); // every position is another one there
    expect(await copyFrom(source, target)).toMatchObject({ deliveries: 5, fault: undefined });
  };
  await withEnds(folders, copied, before.clock);

  const after = await machineIn(folders[1]);
  await after.clock.jump(before.clock.now() - after.clock.now());
  await after.follow();
  after.start();
  await settle();
  const events = (await logOf(after.store)).filter(({ stream }) => stream.startsWith('transaction-'));
  expect(events).toHaveLength(7);
  await after.fan(...events);
  await after.clock.advance(HOUR_MS);
  expect(after.sender.sent).toEqual([]); // without access nothing is attempted
  await after.account({ type: 'IntegrationEnabled', data: { account_id: 7 } });
  await after.clock.advance(HOUR_MS);
  expect(after.sender.sent.map(({ id, attempt }) => [id, attempt]).sort()).toEqual(
    [
      [idOf(503), 2],
      [idOf(505), 1],
    ].sort(),
  );
  expect(await countByState(after.queue)).toEqual({
    pending: 0,
    delivered: 3,
    failed: 1,
    withdrawn: 1,
  });
  const [event] = await after.store.readStream('transaction-503');
  expect((await after.queue.find(idOf(503)))?.position).toBe(event?.position);
});

test('an account event before the copy ends what was owed before it, and nothing that was owed after it', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  await storeIdentity(before.store, before.clock);
  await before.account(...READY);
  before.start();
  before.sender.answer = () => ({ outcome: answered(503), afterMs: 5 });
  const event = (type: 'KeySwitchedOff' | 'KeySwitchedOn') =>
    ({ type, data: { account_id: 7, prefix: PREFIX } }) as const;
  await before.account(event('KeySwitchedOff'), event('KeySwitchedOn'));
  await before.push(501);
  await before.clock.advance(100);
  before.kill();
  await withEnds(folders, async (source, target) => {
    await systemEvents(target.store, 10); // every position is a larger one there
    await copyFrom(source, target);
  });
  const after = await machineIn(folders[1]);
  await after.clock.jump(before.clock.now() - after.clock.now());
  await after.follow();
  after.start();
  await after.clock.advance(31_000);
  expect((await after.queue.find(idOf(501)))?.state).toBe('delivered');
});

describe('the position of a delivery in another store', () => {
  const event = (
    type: 'TransactionConfirmed' | 'ExternalTransactionRecorded' | 'TransactionVoided',
    id: number,
  ) => newEvent({ type, data: { transaction_id: id } as never }, { actor: 'test', command: 'test' }, 0);

  test('is that of the event that recorded its transaction, or before everything where it was erased', async () => {
    const { store } = newEnd();
    await record(store, 'account-1', 'first');
    for (const [id, type] of [
      [1, 'TransactionConfirmed'],
      [2, 'ExternalTransactionRecorded'],
      [3, 'TransactionConfirmed'],
    ] as const) {
      await store.append([{ stream: `transaction-${id}`, expected: 'none', events: [event(type, id)] }]);
      await store.append([
        { stream: `transaction-${id}`, expected: 0, events: [event('TransactionVoided', id)] },
      ]);
    }
    await store.erase('transaction-3');
    const rows = [1, 2, 3, 4].map((id) => ({ transaction_id: id, position: 77, lease: 'x' }) as StoredRow);
    expect((await relocated(rows, store)).map(({ position }) => position)).toEqual([2, 4, 0, 0]);
  });
});

/** Each row of the log but its name's, by its table. */
async function contentOf({ queue: { tables } }: Pick<EmbeddedEnd, 'queue'>) {
  const all = (table: TablePlan) =>
    tables.find(table, { index: 'key', limit: 10_000, columns: Object.keys(table.columns) as never[] });
  return Promise.all([DELIVERIES, LANES, WITHDRAWALS].map(all));
}

describe('a copied delivery log', () => {
  /** Its deliveries fail, so that its webhooks have a streak. */
  const failing = async ({ queue }: EmbeddedEnd, prefix: string, ids: readonly number[]): Promise<void> => {
    const claimed = await queue.enqueue(
      ids.map((id) => newDelivery(id, { prefix })),
      claimOptions(1_000),
    );
    await queue.report(claimed.map((claim) => failed(claim, 1_000)));
  };

  test('has the rows of its source, however many, but the claims', async () => {
    const [source, target] = [newEnd(), newEnd()];
    const ids = Array.from({ length: 350 }, (_, n) => n + 1);
    await recordTransactions(target, ids);
    await logged(source, ids);
    await failing(source, 'bbbbbbbbbb', [1, 2, 3]);
    await source.queue.change({ kind: 'withdraw', transactionIds: [9, 900] }, 5_000);
    const before = await contentOf(source);
    await claimFrom(source.queue, claimOptions(9_000, { limit: 3 }));
    const options = { targetStore: target.store, onProgress: () => undefined };
    const log = { source: source.queue.tables, target: target.queue.tables };
    const first = await copyDeliveries({ ...options, ...log });
    expect(first).toBe(353);
    const [deliveries = [], ...others] = await contentOf(target);
    expect(others).toEqual(before.slice(1));
    const shown = (rows: readonly object[]) =>
      rows.map((row) => ({ ...row, position: 0, due_at: 0, version: 0 }));
    expect(shown(deliveries)).toEqual(shown(before[0] ?? []));
    expect(await copyDeliveries({ ...options, ...log })).toEqual(first);
    expect(
      await claimFrom(target.queue, claimOptions(99_000, { limit: 1_000, laneCapacity: () => 1_000 })),
    ).toHaveLength(349);
  });

  test('has what its source has wherever the target differed', async () => {
    const clock = new FakeClock(); // both have the same parts of the index of ids
    const [source, target] = [newEnd(clock), newEnd(clock)];
    await logged(source, [1, 2]);
    await logged(target, [1]);
    await target.queue.change({ kind: 'withdraw', transactionIds: [1] }, 5_000);
    await recordTransactions(target, [1, 2]); // at the positions that the deliveries have
    const log = { source: source.queue.tables, target: target.queue.tables };
    expect(await copyDeliveries({ ...log, targetStore: target.store, onProgress: () => undefined })).toBe(2);
    expect((await contentOf(target))[0]).toEqual((await contentOf(source))[0]);
  });

  test('has no name that is taken from a log with deliveries', async () => {
    const [source, target] = [newEnd(), newEnd()];
    const [name, own] = [await source.queue.logId(), await target.queue.logId()];
    expect(own.id).not.toBe(name.id);
    const log = { source: source.queue.tables, target: target.queue.tables };
    await nameLog(log);
    expect(await target.queue.logId()).toEqual(name);
    await logged(target, [1]);
    await nameLog(log);
    await expect(nameLog({ ...log, source: newEnd().queue.tables })).resolves.toBeUndefined();
    const other = newEnd();
    await other.queue.logId();
    await expect(nameLog({ ...log, source: other.queue.tables })).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await target.queue.logId()).toEqual(name);
  });
});
