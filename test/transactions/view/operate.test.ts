import { describe, expect, test } from 'vitest';
import { OPERATIONS_STREAM } from '../../../src/domain/operations-events.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { projectionStatus, retryParked } from '../../../src/transactions/view/operate.ts';
import { PROJECTOR_LEASE } from '../../../src/transactions/view/projector.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { beforeCall, openProjection } from '../../support/transactions/projector.ts';

/** An empty view of the store, with what was parked of it. */
async function started() {
  const opened = openProjection();
  const { store, view, clock } = opened;
  const { generation } = await view.reset(await storeIdentity(store, clock), 0);
  const parked = (stream: string, position: number, revision = 0) =>
    view.apply([{ position, stream, type: 'Odd', revision, parkReason: 'odd' }], { generation, position: 1 });
  return { ...opened, generation, parked };
}

describe('the status of the projection', () => {
  test('of a view that has everything has no lag, whatever other streams hold', async () => {
    const { store, view, coordination, clock, append, generation } = await started();
    await append('transaction-1', confirmed(1));
    await view.apply([], { generation, position: await store.head() });
    const position = await store.head();
    await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
    expect(await projectionStatus(store, view, coordination, clock)).toEqual({
      name: 'transactions',
      position,
      lag_seconds: 0,
      lag_events: 0,
      parked: 0,
      holder: null,
    });
  });

  test('counts the events that are not in the view, and reports the age of the first, the parked events and the holder', async () => {
    const { store, view, coordination, clock, append, generation, parked } = await started();
    await append('transaction-1', confirmed(1));
    await view.apply([], { generation, position: await store.head() });
    await append('transaction-2', confirmed(2), voided(2));
    clock.advance(4_600);
    await append('transaction-3', confirmed(3));
    await parked('transaction-8', 1);
    await parked('transaction-9', 2);
    await coordination.acquire(PROJECTOR_LEASE, 'this one', 1_000);
    expect(await projectionStatus(store, view, coordination, clock)).toMatchObject({
      lag_seconds: 5,
      lag_events: 3,
      parked: 2,
      holder: 'this one',
    });
  });

  test('of a view that was never reset counts from the first event of the log', async () => {
    const { store, view, coordination, clock, append } = openProjection();
    await append('transaction-1', confirmed(1));
    const status = await projectionStatus(store, view, coordination, clock);
    expect(status).toMatchObject({ position: 0, lag_events: 1 });
  });

  test('stops counting at more than 100,000 events', async () => {
    const { store, view, coordination, clock } = openProjection();
    let counted = 0;
    const statusOf = (total: number) => {
      const log = () =>
        batchesOf(total, (count) => {
          counted += count;
        });
      return projectionStatus(subscribedBy(store, log), view, coordination, clock);
    };
    expect(await statusOf(100_000)).toMatchObject({ lag_events: 100_000 });
    counted = 0;
    expect(await statusOf(1_000_000)).toMatchObject({ lag_events: null });
    expect(counted).toBeLessThan(102_000);
  });
});

describe('retrying what is parked', () => {
  const author = { actor: 'Ada', command: 'test' };

  test('applies one event or all, returns how many stay parked, and records which were retried', async () => {
    const { store, view, append, parked, clock } = await started();
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
    const options = { author, atMs: clock.now() };
    const first = await retryParked(store, view, { ...options, only: two });
    expect(first).toEqual({ retried: 1, still_parked: 0 });
    expect([await view.find(1), typeof (await view.find(2))]).toEqual([undefined, 'object']);
    const rest = await retryParked(store, view, { ...options, only: undefined });
    expect(rest).toEqual({ retried: 2, still_parked: 1 });
    expect(await view.find(1)).toMatchObject({ id: 1 });
    expect(await view.parked()).toMatchObject([{ position: guessed, type: 'TransactionGuessed' }]);
    const recorded = (await store.readStream(OPERATIONS_STREAM)).slice(1);
    expect(recorded).toMatchObject([
      { type: 'ParkedRetried', data: { projection: 'transactions', positions: [two] } },
      { type: 'ParkedRetried', data: { positions: [one, guessed] } },
    ]);
    expect(recorded[0]?.metadata).toMatchObject({ actor: 'Ada' });
  });

  test('leaves out what was erased since, and records nothing where nothing was retried', async () => {
    const { store, view, append, parked, clock } = await started();
    await append('transaction-1', confirmed(1));
    await parked('transaction-1', 5);
    await store.erase('transaction-1');
    const before = await store.readStream(OPERATIONS_STREAM);
    for (const only of [undefined, 5, 99]) {
      const retried = await retryParked(store, view, { author, atMs: clock.now(), only });
      expect(retried).toEqual({ retried: 0, still_parked: 0 });
    }
    expect(await store.readStream(OPERATIONS_STREAM)).toEqual(before);
  });

  test('records nothing of a retry that failed', async () => {
    const { store, view, append, parked, clock } = await started();
    await append('transaction-1', confirmed(1));
    const [event] = await store.readStream('transaction-1');
    await parked('transaction-1', event?.position ?? 0);
    const failing = beforeCall(view, 'retry', () => {
      throw new Error('no space');
    });
    const options = { author, atMs: clock.now(), only: undefined };
    await expect(retryParked(store, failing, options)).rejects.toThrow('no space');
    expect((await store.readStream(OPERATIONS_STREAM)).map(({ type }) => type)).toEqual(['StoreNamed']);
  });
});

function subscribedBy(store: EventStore, subscribe: () => ReturnType<EventStore['subscribe']>): EventStore {
  const get = (whole: EventStore, name: string | symbol): unknown =>
    name === 'subscribe' ? subscribe : (whole[name as keyof EventStore] as () => unknown).bind(whole);
  return new Proxy(store, { get });
}

/** So many events in batches of a thousand; only their time of recording is looked at. */
async function* batchesOf(
  total: number,
  handedOut: (count: number) => void,
): ReturnType<EventStore['subscribe']> {
  for (let position = 1_000; position <= total; position += 1_000) {
    handedOut(1_000);
    const events = Array.from({ length: 1_000 }, () => ({ recordedAtMs: 0 }) as never);
    yield { events, position, caughtUp: position === total };
  }
}
