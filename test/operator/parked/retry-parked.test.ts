import { describe, expect, test } from 'vitest';
import { OPERATIONS_STREAM } from '../../../src/domain/operations-events.ts';
import { parkedBy } from '../../../src/operator/answers/follower.ts';
import { replayParked, retryParked } from '../../../src/operator/parked/retry-parked.ts';
import { VIEW_NAME } from '../../../src/pull/view/projector.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../../src/push/fan-out/run-fan-out.ts';
import { noRows } from '../../support/accounts/rows-after.ts';
import { openForTest, SETTINGS } from '../../support/event-store/embedded-subscriptions.ts';
import { record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';
import { beforeCall, emptyView, openProjection } from '../../support/transactions/projector.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

/** The view whose pages of what is parked have one event each; reading more of them than `most` fails. */
function inPages(view: TransactionsView, most: number): TransactionsView {
  let read = 0;
  return replacing(view, {
    async parked(page) {
      if (++read > most) throw new Error(`more than ${most} pages were read`);
      return view.parked({ ...page, limit: 1 });
    },
  });
}

describe('retrying what is parked', () => {
  const author = { actor: 'Ada', command: 'test' };

  test('applies one event or all, returns how many stay parked, and records which were retried', async () => {
    const { store, view, append, parked, clock } = await emptyView(openProjection());
    await append('transaction-1', confirmed(1));
    await append('transaction-2', { type: 'TransactionGuessed', data: {} }, confirmed(2));
    const positionOf = async (stream: string, revision: number): Promise<number> =>
      (await store.readStream(stream))[revision]?.position ?? 0;
    const one = await positionOf('transaction-1', 0);
    const guessed = await positionOf('transaction-2', 0);
    const two = await positionOf('transaction-2', 1);
    await parked('transaction-1', one);
    await parked('transaction-2', guessed);
    await parked('transaction-2', two, 1);
    const options = { author, clock };
    const beside = await retryParked(store, view, { ...options, only: one - 1 });
    expect(beside).toEqual({ retried: 0, still_parked: 0 });
    const first = await retryParked(store, view, { ...options, only: two });
    expect(first).toEqual({ retried: 1, still_parked: 0 });
    expect([await rowIn(view, 1), typeof (await rowIn(view, 2))]).toEqual([undefined, 'object']);
    const rest = await retryParked(store, view, { ...options, only: undefined });
    expect(rest).toEqual({ retried: 2, still_parked: 1 });
    expect(await rowIn(view, 1)).toMatchObject({ id: 1 });
    expect(await view.parked()).toMatchObject([{ position: guessed, type: 'TransactionGuessed' }]);
    const recorded = (await store.readStream(OPERATIONS_STREAM)).slice(1);
    expect(recorded).toMatchObject([
      { type: 'ParkedRetried', data: { projection: 'transactions', positions: [two] } },
      { type: 'ParkedRetried', data: { positions: [one, guessed] } },
    ]);
    expect(recorded[0]?.metadata).toMatchObject({ actor: 'Ada' });
  });

  test('goes through every page, and has applied a page before it records that', async () => {
    const { store, view, append, parked, clock } = await emptyView(openProjection());
    for (const id of [1, 2, 3]) {
      await append(`transaction-${id}`, confirmed(id));
      const [event] = await store.readStream(`transaction-${id}`);
      await parked(`transaction-${id}`, event?.position ?? 0);
    }
    const parts = {
      store,
      view: inPages(view, 4),
      subscriptions: { parked: async () => [] },
      accounts: noRows(clock),
    };
    const listed = await Array.fromAsync(parkedBy(VIEW_NAME, parts));
    expect(listed.map(({ stream }) => stream)).toEqual(['transaction-1', 'transaction-2', 'transaction-3']);
    const leftAtRecord: number[] = [];
    const recording = interposed(store, ['append'], async () => {
      leftAtRecord.push((await view.parked()).length);
    });
    const slow = interposed(
      inPages(view, 7),
      ['replace'],
      () => new Promise((resolve) => setImmediate(resolve)),
    );
    const options = { author, clock, only: undefined };
    expect(await retryParked(recording, slow, options)).toEqual({ retried: 3, still_parked: 0 });
    expect(leftAtRecord).toEqual([2, 1, 0]);
  });

  test('leaves out what was erased since, and records nothing where nothing was retried', async () => {
    const { store, view, append, parked, clock } = await emptyView(openProjection());
    await append('transaction-1', confirmed(1));
    await parked('transaction-1', 5);
    await store.erase('transaction-1');
    const before = await store.readStream(OPERATIONS_STREAM);
    for (const only of [undefined, 5, 99]) {
      const retried = await retryParked(store, view, { author, clock, only });
      expect(retried).toEqual({ retried: 0, still_parked: 0 });
    }
    expect(await store.readStream(OPERATIONS_STREAM)).toEqual(before);
  });

  test('records nothing of a retry that failed', async () => {
    const { store, view, append, parked, clock } = await emptyView(openProjection());
    await append('transaction-1', confirmed(1));
    const [event] = await store.readStream('transaction-1');
    await parked('transaction-1', event?.position ?? 0);
    const failing = beforeCall(view, 'replace', () => {
      throw new Error('no space');
    });
    const options = { author, clock, only: undefined };
    await expect(retryParked(store, failing, options)).rejects.toThrow('no space');
    expect((await store.readStream(OPERATIONS_STREAM)).map(({ type }) => type)).toEqual(['StoreNamed']);
  });

  test('of the deliveries is recorded before they are handed out again', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = openForTest(temporaryFolder(), clock);
    await subscriptions.ensureGroup(DELIVERIES_GROUP, SETTINGS);
    await record(store, 'transaction-1', 'odd');
    const signal = new AbortController().signal;
    const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: 1, signal });
    for await (const event of consumer) {
      await consumer.park(event, 'odd');
      break;
    }
    const recorded = async () => (await store.readStream(OPERATIONS_STREAM)).map(({ data }) => data);
    let atReplay: unknown;
    const replaying = interposed(subscriptions, ['replayParked'], async () => {
      atReplay = await recorded();
    });
    const [parked] = await subscriptions.parked(DELIVERIES_GROUP);
    const retry = () => replayParked(store, replaying, { author, clock });
    expect(await retry()).toEqual({ retried: 1, still_parked: null });
    const positions = [parked?.event.position];
    expect(atReplay).toEqual([{ projection: DELIVERIES_GROUP, positions }]);
    expect(await subscriptions.parked(DELIVERIES_GROUP)).toEqual([]);
    expect(await retry()).toEqual({ retried: 0, still_parked: null });
    expect(await recorded()).toHaveLength(1);
  });
});
