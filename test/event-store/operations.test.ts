import { expect, test } from 'vitest';
import type { OperationsEvent } from '../../src/domain/operations-events.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { OperationsState, operationsOf } from '../../src/event-store/operations.ts';
import type { RecordedEvent } from '../../src/event-store/recorded-event.ts';

const DAY = Date.parse('2026-09-01T00:00:00Z');
const at = (revision: number) => DAY + revision * 1_000;

/** The events as the stream has them: event n was recorded n seconds after midnight, at position 10 n. */
function recorded(...events: readonly OperationsEvent[]): RecordedEvent[] {
  return events.map((event, revision) => ({
    ...newEvent(event, { actor: 'ann', command: 'test' }, at(revision)),
    stream: 'operations',
    revision,
    position: revision * 10,
    recordedAtMs: at(revision),
  }));
}

function stateOf(...events: readonly OperationsEvent[]): OperationsState {
  const state = new OperationsState();
  state.apply(recorded(...events));
  return state;
}

const environment = (name: 'staging' | 'production') =>
  ({ type: 'EnvironmentSet', data: { environment: name } }) as const;
const masterKey = (id: string, reason: string | null) =>
  ({ type: 'MasterKeyAdded', data: { fingerprint: `f-${id}`, master_key_id: id, reason } }) as const;
const verified = (left: number) => ({ type: 'AgreementVerified', data: { transactions: 9, left } }) as const;
const skipped = (revision: number) => {
  const place = { position: 100 + revision, stream: 'account-7', revision };
  return { type: 'ParkedSkipped', data: { ...place, reason: 'by hand' } } as const;
};
const leaf = (index: number) => ({ stream: 'transaction-5', revision: index, index, hash: `h${index}` });

test('a store stays in its first environment, and events that set another one are named', () => {
  const { environment: of, ignoredEnvironments } = stateOf(
    environment('staging'),
    environment('production'),
    environment('staging'),
  );
  expect({ of, ignoredEnvironments }).toEqual({ of: 'staging', ignoredEnvironments: [1] });
});

test('every master key that the store ever had is known, and whether one was lost', () => {
  const own = stateOf(masterKey('a', null), masterKey('b', null));
  expect([...own.masterKeys.values()].map(({ id }) => id)).toEqual(['a', 'b']);
  expect(own.hasLostKey).toBe(false);
  expect(stateOf(masterKey('a', null), masterKey('b', 'disk broke')).hasLostKey).toBe(true);
});

test('a mark as moved holds until it is removed', () => {
  const moved: OperationsEvent = { type: 'StoreMoved', data: { to: ['esdb://db'] } };
  const unmarked = { type: 'StoreUnmarked', data: { reason: 'back' } } as const;
  expect(stateOf(moved).move).toEqual({ to: ['esdb://db'], at: '2026-09-01T00:00:00.000Z' });
  expect(stateOf(moved, unmarked).move).toBeUndefined();
});

test('what was erased and redacted is known by index, place, stream and driver, with who did it', () => {
  const erased = { transaction_id: 5, account_id: 7, reason: 'on request', leaves: [leaf(0), leaf(1)] };
  const redacted = { driver_id: 77, account_id: 7, reason: 'left', leaves: [leaf(2)] };
  const { gaps, redactedAt } = stateOf(
    { type: 'TransactionErased', data: erased },
    { type: 'DriverRedacted', data: redacted },
  );
  expect(gaps.at(1)).toEqual({
    ...leaf(1),
    by: { type: 'TransactionErased', at: '2026-09-01T00:00:00.000Z', actor: 'ann', reason: 'on request' },
  });
  expect(gaps.at(3)).toBeUndefined();
  expect([gaps.has(leaf(2)), gaps.has(leaf(3))]).toEqual([true, false]);
  expect([gaps.isErased('transaction-5'), gaps.isErased('transaction-6')]).toEqual([true, false]);
  expect([...redactedAt]).toEqual([['7/77', 10]]);
});

test('only a verification that left nothing proves something', () => {
  expect(stateOf(verified(0), verified(1)).verifiedAtMs).toBe(at(0));
  expect(stateOf(verified(1)).verifiedAtMs).toBeUndefined();
});

test('what was skipped is another set whenever an event was skipped, and the same otherwise', () => {
  const state = new OperationsState();
  const events = recorded(skipped(1), verified(0), skipped(2));
  state.apply(events.slice(0, 1));
  const first = state.skipped;
  expect([...first]).toEqual(['account-7@1']);
  state.apply(events.slice(0, 2));
  expect(state.skipped).toBe(first);
  state.apply(events);
  expect([...state.skipped]).toEqual(['account-7@1', 'account-7@2']);
  expect([...state.skippedPositions]).toEqual([101, 102]);
});

test('an event that cannot be read changes nothing, and one of another stream neither', () => {
  const [event] = recorded(environment('staging')) as [RecordedEvent];
  const state = new OperationsState();
  state.apply([{ ...event, data: { environment: 'moon' } }]);
  state.apply([{ ...event, stream: 'operations-of-somebody', revision: 1 }]);
  expect(state.environment).toBeUndefined();
  expect(state.revision).toBe(1);
});

test('the stream is read once for each store, and calls at the same time apply each event once', async () => {
  const log = recorded(environment('staging'), environment('production'));
  const read: number[] = [];
  const store: Pick<EventStore, 'readStream'> = {
    readStream: async (_, { fromRevision = 0 } = {}) => {
      const events = log.slice(fromRevision);
      read.push(events.length);
      return events;
    },
  };
  const [one, other] = await Promise.all([operationsOf(store), operationsOf(store)]);
  expect(other).toBe(one);
  expect(one.ignoredEnvironments).toEqual([1]);
  await operationsOf(store);
  expect(read).toEqual([2, 2, 0]);
});
