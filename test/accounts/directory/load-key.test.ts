import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { loadDirectory, loadKey } from '../../../src/accounts/directory/load-directory.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  snapshotParts,
} from '../../../src/accounts/directory/snapshots/snapshot.ts';
import { openSqliteDirectorySnapshots } from '../../../src/accounts/directory/snapshots/sqlite.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { openSqliteEventStore } from '../../../src/event-store/sqlite/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { keyIssued, onKey, opened } from '../../support/accounts/account-samples.ts';
import { sealKeys } from '../../support/accounts/seal-keys.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const ACCOUNTS = 12;
/** So that each account has a part of its own. */
const PART_BYTES = 1;

const prefixOf = (n: number): string => `prefix${String(n).padStart(4, '0')}`;

/** Accounts are opened; then keys, numbered in their order, are issued to them or, where `isOff`, switched off. */
type Step = { readonly account: number; readonly key: number; readonly isOff: boolean };

function eventsOf(steps: readonly Step[]): AccountEvent[] {
  const owners = new Map<number, number>();
  return steps.flatMap(({ account, key, isOff }) => {
    const prefix = prefixOf(key);
    const owner = owners.get(key);
    if (owner === undefined) {
      owners.set(key, account);
      return [keyIssued({ account_id: account, prefix })];
    }
    if (!isOff) return [];
    const { type, data } = onKey('KeySwitchedOff');
    return [{ type, data: { ...data, account_id: owner, prefix } } as AccountEvent];
  });
}

function machine() {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const snapshots = openSqliteDirectorySnapshots({ path: join(folder, 'directory.db'), keys: sealKeys(1) });
  onTestFinished(() => Promise.all([store.close(), snapshots.close()]).then(() => undefined));

  async function record(events: readonly AccountEvent[]): Promise<void> {
    for (const event of events) {
      const stream = accountStream(event.data.account_id);
      await store.append([{ stream, expected: 'any', events: [newEvent(event, AUTHOR, clock.now())] }]);
    }
  }

  async function save(): Promise<void> {
    const directory = await loadDirectory(store);
    const { events } = await store.readBackwards({ prefixes: ['account-'], limit: 1 });
    const [last] = events;
    if (last === undefined) throw new Error('nothing was recorded');
    const storeId = await storeIdentity(store, clock);
    const content = {
      anchor: { ...last, eventId: last.id },
      events: [],
      accounts: directory.states(),
    };
    const header = { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position: last.position };
    await snapshots.save(header, snapshotParts(content, PART_BYTES));
  }
  return { store, snapshots, record, save };
}

test('a key is found as in the whole directory, whether it is in the snapshot, behind it, or nowhere', async () => {
  const step = fc.record({
    account: fc.integer({ min: 1, max: ACCOUNTS }),
    key: fc.nat(20),
    isOff: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(30), async (steps, savedAfter) => {
      const { store, snapshots, record, save } = machine();
      const accounts = Array.from({ length: ACCOUNTS }, (_, index) => opened('An account', index + 1));
      const events = [...accounts, ...eventsOf(steps)];
      await record(events.slice(0, ACCOUNTS + savedAfter));
      await save();
      await record(events.slice(ACCOUNTS + savedAfter));
      const whole = await loadDirectory(store);
      for (let key = 0; key <= 20; key++) {
        const [found, expected] = [await loadKey(store, snapshots, prefixOf(key)), whole.key(prefixOf(key))];
        expect([found?.entry.id, found?.key]).toEqual([expected?.entry.id, expected?.key]);
      }
    }),
    { numRuns: 10 },
  );
});

test('a snapshot that is ahead of the log is not used', async () => {
  const { store, snapshots, record, save } = machine();
  await record([opened(), keyIssued({ prefix: prefixOf(1) })]);
  await save();
  const ahead = {
    async load() {
      const stored = await snapshots.load();
      if (stored === undefined) return undefined;
      return { header: { ...stored.header, position: 1_000 }, parts: stored.parts };
    },
  };
  expect((await loadKey(store, ahead, prefixOf(1)))?.entry.id).toBe(7);
});
