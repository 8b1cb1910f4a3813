import { expect, test } from 'vitest';
import { restoreDirectory } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountState } from '../../../src/accounts/directory/fold/directory-entry.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { EventStore, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import { NONE_SKIPPED } from '../../../src/event-store/skipped-events.ts';
import { keyIssued, onKey, opened } from '../../support/accounts/account-samples.ts';
import { contentOf } from '../../support/accounts/directory-content.ts';
import { saveAll } from '../../support/accounts/stored-directory.ts';
import { replacing } from '../../support/interposed.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';
import { type Machine, machine } from './live-machine.ts';

const unavailable = (): never => {
  throw new FuelError('STORE_UNAVAILABLE', 'away');
};

/** A store whose log is followed in the batches that a test hands over. */
function handed(store: EventStore) {
  const steps: (SubscriptionBatch | Error)[] = [];
  let wake = (): void => undefined;
  const hand = (...given: typeof steps): void => {
    steps.push(...given);
    wake();
  };
  const followed = replacing(store, {
    async *subscribe({ signal }) {
      signal.addEventListener('abort', () => wake());
      while (!signal.aborted) {
        const step = steps.shift();
        if (step instanceof Error) throw step;
        if (step !== undefined) yield step;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  });
  return { followed, hand };
}

const placeOf = ({ id, position, revision }: AccountState) => ({
  ...{ id, position, revision, lastKeys: undefined, keyEvents: undefined },
});

/**
 * Saves the directory as of now. Accounts in `closed` are saved as by a version that could not read their first
 * event.
 */
async function saveAs(m: Machine, { closed = [] }: { closed?: readonly number[] } = {}): Promise<number> {
  const directory = await loadDirectory(m.store);
  const states = [...directory.states()].map((state) =>
    closed.includes(state.id)
      ? { ...placeOf(state), packed: undefined, unreadable: { position: 1, reason: 'new' } }
      : state,
  );
  return saveAll(m, { states: () => states });
}

test('a move is reported when the directory is there, and knows that it has caught up', async () => {
  const { store, account, start } = machine();
  await account(opened());
  const { followed, hand } = handed(store);
  const { moved } = start({ on: followed });
  const events = await store.readStream('account-7');
  hand(
    { events, position: 5, checkpoint: 5, caughtUp: true },
    { events: [], position: 9, checkpoint: 9, caughtUp: true },
  );
  await until(() => moved.length === 2);
  expect(moved).toEqual([
    { position: 5, of: 5, isCaughtUp: true, isOpen: true },
    { position: 9, of: 9, isCaughtUp: true, isOpen: true },
  ]);
});

test('an event is reported once the directory has applied it', async () => {
  const { account, start } = machine();
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  const { live, toldAt } = start();
  await live.whenCaughtUp;
  expect(toldAt).toEqual(['AccountOpened 0', 'KeyIssued 1', 'KeySwitchedOff 2']);
});

test('a heartbeat of the store, without any event, ends its silence', async () => {
  const { store, clock, start } = machine();
  const { followed, hand } = handed(store);
  const { live, moved } = start({ on: followed });
  hand({ events: [], position: 0, checkpoint: 0, caughtUp: true });
  await live.whenCaughtUp;
  clock.advance(70_000);
  hand({ events: [], position: 0, checkpoint: 0, caughtUp: true });
  await until(() => moved.length === 2);
  expect(live.silenceMs).toBeLessThan(60_000);
});

test('a store that answers again is said to be available with the first batch', async () => {
  const { store, start } = machine();
  const { followed, hand } = handed(store);
  const { lines, moved } = start({ on: followed });
  hand(new FuelError('STORE_UNAVAILABLE', 'away'), {
    events: [],
    position: 0,
    checkpoint: 0,
    caughtUp: true,
  });
  await until(() => moved.length === 1);
  expect(lines.map(({ msg }) => msg)).toEqual([
    'directory waits: a store is unavailable',
    'directory continues: the store is available again',
    'directory caught up',
  ]);
});

test('a process that stops while it saves the directory has ended when that is done', async () => {
  const { account, start } = machine();
  await account(opened(), ...Array.from({ length: 999 }, () => onKey('WebhookFailing')));
  const [saving, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const steps: string[] = [];
  const { stop } = start({
    async save() {
      saving.resolve();
      await finish.promise;
      steps.push('saved');
      return true;
    },
  });
  await saving.promise;
  const isEnded = stop().then(() => void steps.push('ended'));
  setImmediate(finish.resolve);
  await isEnded;
  expect(steps).toEqual(['saved', 'ended']);
});

test('a thread starts from what the main thread has read, or folded, and is told the same', async () => {
  const m = machine();
  const { account, store, clock, start } = m;
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  for (const _ of ['folded', 'read']) {
    const main = start();
    await main.live.whenCaughtUp;
    const shared = structuredClone(main.live.shared);
    const told: string[] = [];
    const stopping = new AbortController();
    const directory = new Directory();
    const onEvent = ({ type }: { type: string }) => told.push(type);
    const options = { store, directory, clock, log: memoryLog([]), signal: stopping.signal };
    const thread = new LiveDirectory({ ...options, shared, onEvent });
    const ended = thread.run();
    await thread.whenCaughtUp;
    expect(contentOf(directory)).toEqual(contentOf(main.live.directory));
    expect(told).toEqual(['KeySwitchedOff']);
    stopping.abort();
    await Promise.all([ended, main.stop()]);
    await saveAs(m);
  }
});

test('where nothing was recorded there is nothing for threads to start from', async () => {
  const { live } = machine().start();
  await live.whenCaughtUp;
  expect(live.shared).toBeUndefined();
});

test('what was recorded after the directory was saved is reported once, also of an account that is read anew', async () => {
  const m = machine();
  const { account, start } = m;
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  await saveAs(m, { closed: [7] });
  await account(onKey('KeySwitchedOn'), onKey('KeySwitchedOff'));
  const { live, toldAt } = start();
  await live.whenCaughtUp;
  expect(live.directory.account(7)).toMatchObject({ revision: 4, unreadable: null });
  expect(toldAt).toEqual(['KeySwitchedOff 2', 'KeySwitchedOn 3', 'KeySwitchedOff 4']);
});

test('a store that becomes unavailable during the restore leaves the directory empty', async () => {
  const m = machine();
  const { account, store, clock, stored } = m;
  await account(opened(), keyIssued());
  await saveAs(m, { closed: [7] });
  const loading = await stored.load(store, clock);
  if (loading.kind !== 'loaded') throw new Error(loading.kind);
  const directory = new Directory();
  const on = { store: replacing(store, { readStreams: unavailable }), skipped: NONE_SKIPPED };
  await expect(restoreDirectory(directory, loading.loaded, on)).rejects.toThrow('away');
  expect([directory.position, [...directory.accounts()]]).toEqual([0, []]);
});
