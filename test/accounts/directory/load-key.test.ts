import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { loadDirectory, loadKey } from '../../../src/accounts/directory/load-directory.ts';
import { packedRow } from '../../../src/accounts/directory/rows/packed-row.ts';
import { StoredDirectory } from '../../../src/accounts/directory/rows/stored-directory.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { keyIssued, onKey, opened } from '../../support/accounts/account-samples.ts';
import { macKeys, openStored, saveAll } from '../../support/accounts/stored-directory.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { replacing } from '../../support/interposed.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const ACCOUNTS = 12;

const prefixOf = (n: number): string => `prefix${String(n).padStart(4, '0')}`;

/** A step on an account: its numbered key is issued or, if `isOff`, switched off. */
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
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const { rows, stored } = openStored();
  onTestFinished(() => Promise.all([store.close(), stored.close()]).then(() => undefined));

  async function record(events: readonly AccountEvent[]): Promise<void> {
    for (const event of events) {
      const stream = accountStream(event.data.account_id);
      await store.append([{ stream, expected: 'any', events: [newEvent(event, AUTHOR, clock.now())] }]);
    }
  }

  const save = async () => saveAll({ store, clock, stored }, await loadDirectory(store));
  return { store, rows, stored, record, save };
}

test('a key is found as in the whole directory, whether it is stored, recorded since, or nowhere', async () => {
  const step = fc.record({
    account: fc.integer({ min: 1, max: ACCOUNTS }),
    key: fc.nat(20),
    isOff: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(30), async (steps, savedAfter) => {
      const { store, stored, record, save } = machine();
      const accounts = Array.from({ length: ACCOUNTS }, (_, index) => opened('An account', index + 1));
      const events = [...accounts, ...eventsOf(steps)];
      await record(events.slice(0, ACCOUNTS + savedAfter));
      await save();
      await record(events.slice(ACCOUNTS + savedAfter));
      const whole = await loadDirectory(store);
      for (let key = 0; key <= 20; key++) {
        const [found, expected] = [await loadKey(store, stored, prefixOf(key)), whole.key(prefixOf(key))];
        expect([found?.entry.id, found?.key]).toEqual([expected?.entry.id, expected?.key]);
      }
    }),
    { numRuns: 10 },
  );
});

test('a key is found by one look-up, without the other accounts and the log', async () => {
  const { store, rows, record, save } = machine();
  await record([opened(), keyIssued({ prefix: prefixOf(1) })]);
  await save();
  const unread = () => {
    throw new Error('it is read');
  };
  const stored = new StoredDirectory({ ...rows, rows: unread, checkpoint: unread }, macKeys(1));
  const found = await loadKey(replacing(store, { subscribe: unread }), stored, prefixOf(1));
  expect([found?.entry.id, found?.key.active]).toEqual([7, true]);
});

test('a prefix that someone moved to another account’s row is found where its stream has it', async () => {
  const { store, rows, stored, record, save } = machine();
  await record([opened(), keyIssued({ prefix: prefixOf(1) }), opened('Other', 9)]);
  await save();
  const checkpoint = await rows.checkpoint();
  if (checkpoint === undefined) throw new Error('nothing was saved');
  const [, other] = [...(await loadDirectory(store)).states()].map(packedRow);
  if (other === undefined) throw new Error('there are two accounts');
  await rows.clear(checkpoint);
  await rows.save([{ ...other, prefixes: [prefixOf(1)] }], checkpoint, checkpoint.mac);
  expect(await rows.owners(prefixOf(1))).toEqual([9]);
  expect((await loadKey(store, stored, prefixOf(1)))?.entry.id).toBe(7);
});

test('where the stored directory cannot be reached a key is found in the log', async () => {
  const { store, stored, record } = machine();
  await record([opened(), keyIssued({ prefix: prefixOf(1) })]);
  const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
  const unavailable = { load: away, owners: away } as Partial<StoredDirectory> as StoredDirectory;
  expect((await loadKey(store, unavailable, prefixOf(1)))?.entry.id).toBe(7);
  expect(await loadKey(store, stored, prefixOf(2))).toBeUndefined();
});
