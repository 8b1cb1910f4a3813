import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { recordOperations } from '../../../src/event-store/operations.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import type { ClaimedDelivery } from '../../../src/push/queue/delivery.ts';
import { namedLeaves } from '../../../src/seals/named-leaves.ts';
import { assertNoUnfinishedCopy } from '../../../src/service/stores/unfinished-copy.ts';
import { claimOptions, failed, newDelivery } from '../../support/deliveries/deliveries.ts';
import { named, record } from '../../support/event-store/store-events.ts';
import { interposed, Steps } from '../../support/interposed.ts';
import {
  copyFrom,
  type EmbeddedEnd,
  kept,
  logOf,
  newEnd,
  operations,
  PROVEN,
  RealisticStore,
  sample,
} from '../../support/store-copy/store-copy.ts';

const PROCESS = { id: 'p', pid: process.pid, host: 'elsewhere', roles: ['api'], isReady: true };

/** As `fuel transaction erase` does it. */
async function erase({ store }: EmbeddedEnd, id: number): Promise<void> {
  const leaves = await namedLeaves(store, await store.readStream(`transaction-${id}`));
  const data = { transaction_id: id, account_id: 7, reason: 'asked for', leaves };
  const author = { actor: 'test', command: 'erase' };
  await recordOperations(store, [{ type: 'TransactionErased', data }], { author, clock: systemClock });
  await store.erase(`transaction-${id}`);
}

const lives = (end: EmbeddedEnd, seenAtMs = Date.now()) =>
  end.coordination.report({ ...PROCESS, startedAtMs: seenAtMs, seenAtMs });

describe('a copy', () => {
  test('keeps the name of the store and is recorded once, at the end', async () => {
    const [source, target] = [await sample(), newEnd()];
    const storeId = await storeIdentity(source.store, systemClock);
    expect(await copyFrom(source, target)).toEqual({
      events: 5,
      deliveries: 0,
      copiedBefore: false,
      ...PROVEN,
    });
    expect(await storeIdentity(target.store, systemClock)).toBe(storeId);
    const recorded = await operations(target);
    expect(recorded.map(({ type }) => type)).toEqual(['StoreNamed', 'StoreCopied']);
    expect(recorded[1]).toMatchObject({
      data: { from_store_id: storeId, events: 5, deliveries: 0 },
      metadata: { actor: 'test', command: 'fuel store copy' },
    });
    expect(await target.store.isErased('transaction-2')).toBe(true);
    expect(await operations(source)).toHaveLength(1);
  });

  test('is refused where an event does not say when it happened', async () => {
    const [source, target] = [await sample(), newEnd()];
    const undated = { ...named('undated'), metadata: { note: 'from elsewhere' } as never };
    await source.store.append([{ stream: 'transaction-9', expected: 'none', events: [undated] }]);
    await expect(copyFrom(source, target)).rejects.toMatchObject({
      code: 'REFUSED',
      message: "transaction-9@0 can't be copied: it does not say when it happened",
    });
  });

  test('of a store that was copied before only proves it again, and does not change what the target has done since', async () => {
    const [source, target] = [await sample(), newEnd()];
    const [before, after] = [newDelivery(1), newDelivery(5)];
    await source.queue.enqueue([before]);
    await copyFrom(source, target);
    await record(target.store, 'transaction-5', 'recorded there');
    await erase(target, 3);
    await target.queue.enqueue([after]);
    await target.queue.change({ kind: 'withdraw', transactionIds: [1] }, 5_000);
    await lives(target);
    const log = (await logOf(target.store)).map(kept);
    expect(await copyFrom(source, target)).toEqual({
      events: 5,
      deliveries: 1,
      copiedBefore: true,
      ...PROVEN,
    });
    expect((await logOf(target.store)).map(kept)).toEqual(log);
    expect((await target.queue.find(before.id))?.state).toBe('withdrawn');
    expect(await target.queue.find(after.id)).toBeDefined();
  });

  test('reports what the embedded store has recorded since, copies none of it, and does not mark it', async () => {
    const [source, target] = [await sample(), newEnd()];
    await copyFrom(source, target);
    await record(source.store, 'transaction-8', 'too late');
    const markMoved = () => Promise.reject(new Error('marked'));
    const { fault } = await copyFrom(source, target, { markMoved });
    expect(fault).toMatchObject({ kind: 'checkpoint', size: 6 });
    expect(await target.store.readStream('transaction-8')).toEqual([]);
  });

  test('erases in the target what was erased after a first run was interrupted', async () => {
    const [source, into] = [await sample(), newEnd()];
    const target = { ...into, store: new RealisticStore(into.store) };
    target.store.appendsLeft = 4;
    await expect(copyFrom(source, target)).rejects.toThrow('is unavailable');
    await source.store.erase('transaction-1');
    target.store.appendsLeft = Infinity;
    expect(await copyFrom(source, target)).toMatchObject({ events: 4, ...PROVEN });
    expect(await into.erasedStreams()).toEqual(['transaction-1', 'transaction-2']);
  });
});

describe('a copy is refused', () => {
  const refused = (message: RegExp) =>
    expect.objectContaining({ code: 'REFUSED', message: expect.stringMatching(message) });

  test('while a process is live on either side', async () => {
    const [source, target] = [await sample(), newEnd()];
    await lives(source);
    await expect(copyFrom(source, target)).rejects.toEqual(
      refused(/elsewhere still works on the store that/),
    );
    await source.coordination.removeProcess(PROCESS.id);
    await lives(target);
    await expect(copyFrom(source, target)).rejects.toEqual(refused(/elsewhere still works on the target/));
    expect(await logOf(target.store)).toEqual([]);
  });

  test('where the target is another store, or holds events that have no name', async () => {
    const [source, target, nameless] = [await sample(), newEnd(), newEnd()];
    const ids = [
      await storeIdentity(target.store, systemClock),
      await storeIdentity(source.store, systemClock),
    ];
    await record(nameless.store, 'account-1', 'opened');
    const log = await target.queue.logId();
    await expect(copyFrom(source, target)).rejects.toEqual(refused(new RegExp(ids.join('.*'))));
    await expect(copyFrom(source, nameless)).rejects.toEqual(refused(/account-1@0/));
    expect(await target.queue.logId()).toEqual(log);
    for (const end of [target, nameless]) {
      expect(await logOf(end.store)).toHaveLength(1);
      await assertNoUnfinishedCopy(end.coordination); // it can be used as before
    }
  });

  test('where the delivery log of the target belongs to others', async () => {
    const [source, target] = [await sample(), newEnd()];
    await target.queue.enqueue([newDelivery(77)]);
    await expect(copyFrom(source, target)).rejects.toEqual(refused(/already holds deliveries/));
    await assertNoUnfinishedCopy(target.coordination);
  });

  test('where an event was recorded while it ran', async () => {
    const [source, target] = [await sample(), newEnd()];
    await source.queue.enqueue([newDelivery(1)]);
    let late: Promise<unknown> | undefined;
    const onProgress = () => {
      late ??= record(source.store, 'transaction-8', 'while it is copied');
    };
    await expect(copyFrom(source, target, { onProgress })).rejects.toEqual(refused(/Run the copy again/));
    await late;
    expect(await copyFrom(source, target)).toMatchObject({ events: 6, ...PROVEN });
  });
});

test('a copy is recorded before its source is marked; what came in between is named, the mark is not', async () => {
  const [source, target] = [await sample(), newEnd()];
  const copy = () =>
    copyFrom(source, target, {
      async markMoved() {
        expect((await operations(target)).map(({ type }) => type)).toEqual(['StoreNamed', 'StoreCopied']);
        await record(source.store, 'account-7', 'late');
        const mark = { ...named('mark'), type: 'StoreMoved' };
        await source.store.append([{ stream: 'operations', expected: 'any', events: [mark] }]);
      },
    });
  expect(await copy()).toMatchObject({ fault: undefined, late: [{ stream: 'account-7' }] });
  expect(await copy()).toMatchObject({ fault: { kind: 'checkpoint' }, late: [] });
});

test('a copy is refused where a process came to work on the source while it ran', async () => {
  const [source, target] = [await sample(), newEnd()];
  let started: Promise<unknown> | undefined;
  const onProgress = () => {
    started ??= lives(source);
  };
  await expect(copyFrom(source, target, { onProgress })).rejects.toMatchObject({ code: 'REFUSED' });
  await started;
  expect(await operations(target)).toHaveLength(1);
});

test('a copy is refused where another process names the target at the same moment', async () => {
  const [source, target] = [await sample(), newEnd()];
  let isFirst = true;
  const store = interposed(target.store, ['append'], async () => {
    if (isFirst) await storeIdentity(target.store, systemClock);
    isFirst = false;
  });
  await expect(copyFrom(source, { ...target, store })).rejects.toMatchObject({ code: 'REFUSED' });
  expect(await logOf(target.store)).toHaveLength(1);
});

test('no copy leaves a reader in either log, whatever it found', async () => {
  const [source, target] = [await sample(), newEnd()];
  const [from, into] = [new RealisticStore(source.store), new RealisticStore(target.store)];
  const copy = () => copyFrom({ ...source, store: from }, { ...target, store: into });
  for (const change of [
    () => Promise.resolve(),
    () => record(target.store, 'account-9', 'its own'),
    () => Promise.resolve(),
    () => record(source.store, 'transaction-8', 'too late'),
  ]) {
    await change();
    await copy();
    expect([from.openSubscriptions, into.openSubscriptions]).toEqual([0, 0]);
  }
  const other = newEnd();
  const lost = new RealisticStore(other.store);
  lost.appendsLeft = 2;
  await expect(copyFrom({ ...source, store: from }, { ...other, store: lost })).rejects.toThrow();
  expect([from.openSubscriptions, lost.openSubscriptions]).toEqual([0, 0]);
});

test('a record of a copy that cannot be read is none: the events are proven, and differ', async () => {
  const [source, target] = [await sample(), newEnd()];
  const [first] = await operations(source);
  const { id, type, data, metadata } = first as RecordedEvent;
  const events = [
    { id, type, data, metadata: metadata as never },
    { ...named(''), type: 'StoreCopied', data: null },
  ];
  await target.store.append([{ stream: 'operations', expected: 'none', events }]);
  expect(await copyFrom(source, target)).toMatchObject({
    copiedBefore: false,
    deliveries: null,
    fault: { kind: 'checkpoint' },
  });
});

test('a copy that was interrupted after it was recorded is ended by the next run, which only proves it again', async () => {
  const [source, target] = [await sample(), newEnd()];
  const release: Coordination['release'] = async (lease, holder) => {
    if (lease === 'store copy') throw new FuelError('STORE_UNAVAILABLE', 'MongoDB cannot be reached');
    await target.coordination.release(lease, holder);
  };
  const interrupted = { ...target, coordination: { ...target.coordination, release } };
  await expect(copyFrom(source, interrupted)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(await operations(target)).toHaveLength(2);
  await expect(assertNoUnfinishedCopy(target.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
  expect(await copyFrom(source, target)).toMatchObject({ copiedBefore: true, ...PROVEN });
  await assertNoUnfinishedCopy(target.coordination);
});

describe('a copy that ends before one of its steps', () => {
  /** With deliveries, a withdrawal and a failure streak. */
  async function filled(): Promise<EmbeddedEnd> {
    const source = await sample();
    const [first] = await source.queue.enqueue([newDelivery(1), newDelivery(3)], claimOptions(1_000));
    await source.queue.report([failed(first as ClaimedDelivery, 1_000)]);
    await source.queue.change({ kind: 'withdraw', transactionIds: [3] }, 2_000);
    return source;
  }

  const ending = (target: EmbeddedEnd, { before }: Steps) => ({
    store: interposed(target.store, ['append', 'erase'], before),
    queue: {
      logId: () => target.queue.logId(),
      tables: interposed(target.queue.tables, ['write'], (name) => before(`deliveries ${name}`)),
    },
    coordination: interposed(target.coordination, ['acquire', 'release'], before),
  });

  test('leaves a target that refuses to be used, or is unused, and is completed by the next run', async () => {
    const source = await filled();
    const all = new Steps();
    const whole = await copyFrom(source, ending(newEnd(), all));
    expect(whole).toMatchObject({ ...PROVEN, deliveries: 2 });
    expect(all.done.length).toBeGreaterThan(7);
    for (const most of all.done.keys()) {
      const target = newEnd();
      const steps = new Steps(most);
      await expect(copyFrom(source, ending(target, steps))).rejects.toThrow('ended before');
      const isUsed = (await logOf(target.store)).length > 1 || (await target.erasedStreams()).length > 0;
      const usable = assertNoUnfinishedCopy(target.coordination);
      if (isUsed) await expect(usable).rejects.toMatchObject({ code: 'REFUSED' });
      else await Promise.allSettled([usable]);
      expect(await copyFrom(source, target)).toMatchObject({ ...PROVEN, deliveries: 2 });
      await assertNoUnfinishedCopy(target.coordination);
      expect((await operations(target)).map(({ type }) => type)).toEqual(['StoreNamed', 'StoreCopied']);
      expect(await target.queue.logId()).toEqual(await source.queue.logId());
    }
  });
});
