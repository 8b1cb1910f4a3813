import { describe, expect, test } from 'vitest';
import { readKeys } from '../../src/accounts/rows/read-rows.ts';
import { readAccount } from '../../src/accounts/rows/stored-account.ts';
import { ACCOUNTS, KEYS, PROGRESS } from '../../src/accounts/rows/tables.ts';
import { FuelError } from '../../src/base/errors.ts';
import { aborted, pause } from '../../src/base/pause.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { skipEvent } from '../../src/operator/parked/skip-event.ts';
import { drop, put, type Tables, type Write } from '../../src/tables/tables.ts';
import { modelOf } from '../support/accounts/account-model.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { cutAfter, followingAccounts } from '../support/accounts/following-accounts.ts';
import { allRows, rowsDiffer } from '../support/accounts/rows-agree.ts';
import type { EmptyStores } from '../support/engines/each-tables.ts';
import { replacing } from '../support/interposed.ts';
import { until } from '../support/waiting.ts';

const OPENED = [opened(), groupAdded(), corporateAdded(3), keyIssued(), webhookSet()];
const INVALID = { type: 'AccountRenamedTwice', data: { account_id: 7 } };
const ENABLED = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;
const unavailable = () => new FuelError('STORE_UNAVAILABLE', 'cut off');

/** A subscription that yields nothing. */
// biome-ignore lint/correctness/useYield: there is nothing to yield
async function* untilEnd(signal: AbortSignal): AsyncGenerator<never, void> {
  await aborted(signal);
}

/** The contract of the rows of accounts. `empty` returns tables without any. */
export function accountRowsContract(empty: () => EmptyStores): void {
  describe('the rows of accounts', () => {
    test('say what the events say, and what changes reaches every row that has it', async () => {
      const { account, append, start, agree, tables } = followingAccounts(empty());
      await account(...OPENED);
      start();
      await agree();
      await account(ENABLED, profileSet('2026-01-01T00:00:00.000Z', null));
      await append('account-8', opened('Eight', 8));
      await agree();
      const offAt = await account(onKey('KeySwitchedOff'));
      await agree();
      const key = (await readKeys(tables, [PREFIX, 'unknown'])).get(PREFIX);
      expect(key).toMatchObject({
        accountId: 7,
        unreadable: null,
        access: { integration: { enabled: true } },
        ended: { position: offAt, reason: 'the key was switched off' },
      });
      await account(onKey('KeySwitchedOn'));
      await agree();
      expect((await readAccount(tables, 7))?.account?.corporates.get(31)).toEqual({
        name: 'North Depot',
        groupId: 3,
      });
      expect(await readAccount(tables, 9)).toBeUndefined();
    });

    test('are complete after a crash between any two of them', async () => {
      for (let done = 0, writes = 1; done <= writes; done++) {
        const { account, start, agree, tables } = followingAccounts(empty());
        await account(...OPENED);
        const first = start();
        await agree();
        await first.stop();
        await account(ENABLED, groupAdded(4, 'Yards'), onKey('KeySwitchedOff'));
        const cut = cutAfter(tables, done);
        const second = start({ tables: cut.tables });
        await until(() => cut.length() > 0);
        await second.stop();
        writes = cut.length();
        void start();
        await agree();
      }
    });

    test('have a checkpoint that never covers what is not written', async () => {
      const { account, start, agree, tables, progress } = followingAccounts(empty());
      await account(...OPENED);
      const first = start();
      await agree();
      await first.stop();
      const before = await progress();
      await account(ENABLED);
      const write: Tables['write'] = async (writes) => {
        if (writes.some(({ table }) => table === ACCOUNTS)) throw unavailable();
        return tables.write(writes);
      };
      const second = start({ tables: replacing(tables, { write }) });
      await until(() => second.said('unavailable') > 0);
      expect(await progress()).toEqual(before);
      await second.stop();
    });

    test('of an account with an event that cannot be read are closed, and no other account’s', async () => {
      const { account, append, start, agree, tables } = followingAccounts(empty());
      await account(...OPENED);
      const { said } = start();
      await append('account-7', INVALID);
      await append('account-7', { ...keyIssued({ prefix: 'zzzzzzzzzz' }) });
      await append('account-8', opened('Eight', 8));
      await agree();
      const keys = await readKeys(tables, [PREFIX, 'zzzzzzzzzz']);
      const reason = expect.stringMatching(/AccountRenamedTwice/);
      expect([...keys.values()]).toMatchObject([{ unreadable: reason }, { unreadable: reason }]);
      expect(await tables.count(ACCOUNTS, { index: 'by_unreadable' }, 10)).toBe(1);
      expect(said('account unreadable')).toBe(1);
    });

    test('of an account are open again once the event is skipped', async () => {
      const { account, append, store, clock, author, start, agree, tables } = followingAccounts(empty());
      await account(...OPENED);
      start();
      const at = await append('account-7', INVALID);
      await account(ENABLED);
      await agree();
      const parked = (await store.readStream('account-7')).find(({ position }) => position === at);
      await skipEvent(store, at, { author, reason: 'by hand', clock, parked });
      await agree();
      expect((await readKeys(tables, [PREFIX])).get(PREFIX)).toMatchObject({
        unreadable: null,
        access: { integration: { enabled: true } },
      });
    });

    test('of an account that has another one’s key are closed, whichever is read first', async () => {
      const { account, append, start, agree, tables } = followingAccounts(empty());
      await account(...OPENED);
      start();
      await agree();
      const other = { ...keyIssued().data, account_id: 8 };
      await append('account-8', opened('Eight', 8), { type: 'KeyIssued', data: other });
      await agree();
      expect((await readKeys(tables, [PREFIX])).get(PREFIX)?.accountId).toBe(7);
      expect((await readAccount(tables, 8))?.unreadable?.reason).toBe(`key ${PREFIX} belongs to account 7`);
    });

    test('that the store refuses close their account, and the others of the batch are written', async () => {
      const { account, append, start, reached, tables, store } = followingAccounts(empty());
      await account(...OPENED);
      await append('account-8', opened('Eight', 8));
      await append('account-9', opened('Nine', 9));
      const isRefused = ({ table, key }: Write) => table === ACCOUNTS && key === 8;
      const write: Tables['write'] = async (writes, options) => {
        const refused = writes.find(isRefused);
        if (refused?.kind === 'put' && refused.row.details !== null)
          throw new FuelError('ITEM_REFUSED', 'too large');
        return tables.write(writes, options);
      };
      start({ tables: replacing(tables, { write }) });
      await reached();
      const rows = await allRows(tables);
      const without = rows.accounts.filter(({ id }) => id !== 8);
      const directory = await modelOf(store);
      expect([...rowsDiffer({ ...rows, accounts: without }, directory)]).toEqual(['account 8 has no row']);
      expect((await readAccount(tables, 8))?.unreadable?.reason).toBe('too large');
    });

    test('of two followers at once never become older', async () => {
      const { account, append, start, agree, open } = followingAccounts(empty());
      await account(...OPENED);
      const free = { acquire: async () => true, release: async () => undefined } as never;
      const [one, other] = [start({ coordination: free }), start({ coordination: free, tables: open() })];
      for (let n = 0; n < 10; n++) {
        await append(
          'account-8',
          n === 0 ? opened('Eight', 8) : { type: 'AccountRenamed', data: { account_id: 8, name: `${n}` } },
        );
        await account(onKey(n % 2 === 0 ? 'KeySwitchedOff' : 'KeySwitchedOn'));
      }
      await agree();
      await until(() => one.said('restarts from') + other.said('restarts from') > 0);
      await agree();
    });

    test('of another event store are removed, and those of this one are made', async () => {
      const { account, append, start, agree, tables, progress } = followingAccounts(empty());
      await account(...OPENED);
      const first = start();
      await agree();
      await first.stop();
      const [row] = await tables.get(ACCOUNTS, [7]);
      const [key] = await tables.get(KEYS, [PREFIX]);
      const known = await progress();
      if (row === undefined || key === undefined || known === undefined) throw new Error('there are rows');
      await tables.write([
        put(ACCOUNTS, { ...row, id: 70, position: 1e9 }),
        put(KEYS, { ...key, prefix: 'zzzzzzzzzz', account_id: 70, position: 1e9 }),
        put(PROGRESS, { ...known, store_id: 'another' }),
      ]);
      await append('account-8', opened('Eight', 8));
      const { said } = start();
      await agree();
      expect(said('cannot be used')).toBe(1);
    });

    test('that are being removed serve nobody, and a follower that is late removes none of the new ones', async () => {
      const { account, start, agree, tables, open, progress } = followingAccounts(empty());
      await account(...OPENED);
      const first = start();
      await agree();
      await first.stop();
      const known = await progress();
      if (known === undefined) throw new Error('there is progress');
      await tables.write([put(PROGRESS, { ...known, store_id: 'another' })]);
      const found = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const late = open();
      const write: Tables['write'] = async (writes, options) => {
        if (!writes.some(({ kind }) => kind === 'drop')) return late.write(writes, options);
        found.resolve();
        await goOn.promise;
        return late.write(writes, options);
      };
      const free = { acquire: async () => true, release: async () => undefined } as never;
      const slow = start({ coordination: free, tables: replacing(late, { write }) });
      await found.promise;
      expect(await progress()).toMatchObject({ store_id: '', complete_at: null });
      start();
      await agree();
      goOn.resolve();
      await slow.stop();
      await agree();
    });

    test('are complete up to the moment that their progress names, and to no later one while they are behind', async () => {
      const { account, store, clock, start, reached, tables, progress } = followingAccounts(empty());
      await storeIdentity(store, clock);
      await account(...OPENED);
      let end = 0;
      const isBehind = Promise.withResolvers<void>();
      const catchUp = Promise.withResolvers<void>();
      const behind = replacing(store, {
        async *subscribe({ signal }) {
          const events = await store.readStream('account-7');
          end = events.at(-1)?.position ?? 0;
          for (const [index, event] of events.entries()) {
            const { position } = event;
            if (index === 3) {
              isBehind.resolve();
              await catchUp.promise;
            }
            yield { events: [event], position, checkpoint: position, caughtUp: false };
          }
          await aborted(signal);
        },
      });
      const before = await tables.now();
      start({ store: behind });
      await isBehind.promise;
      expect((await progress())?.complete_at).toBeNull();
      catchUp.resolve();
      await reached();
      const { position, complete_at } = (await progress()) ?? {};
      expect(position).toBeGreaterThanOrEqual(end);
      expect(complete_at).toBeGreaterThanOrEqual(before - 1);
      expect(complete_at).toBeLessThanOrEqual(await tables.now());
    });

    test('say how far the log was read beyond their checkpoint, on which a follower that begins does not rely', async () => {
      const { account, store, clock, start, progress } = followingAccounts(empty());
      await storeIdentity(store, clock);
      const end = await account(...OPENED);
      const beyond = end + 1_000;
      const readBeyond = replacing(store, {
        async *subscribe({ signal }) {
          const events = await store.readStream('account-7');
          yield { events, position: end, checkpoint: end, caughtUp: true };
          for (; !signal.aborted; await pause(20, signal))
            yield { events: [], position: beyond, checkpoint: end, caughtUp: true };
        },
      });
      const first = start({ store: readBeyond });
      await until(async () => (await progress())?.reached === beyond);
      expect(await progress()).toMatchObject({ position: end });
      await first.stop();
      start({ holder: 'two', store: replacing(store, { subscribe: ({ signal }) => untilEnd(signal) }) });
      await until(async () => (await progress())?.reached === end);
    });

    test('that are gone are made again by the next event of their account', async () => {
      const { account, start, agree, tables } = followingAccounts(empty());
      await account(...OPENED);
      start();
      await agree();
      await tables.write([drop(ACCOUNTS, 7), drop(KEYS, PREFIX)]);
      await account(ENABLED);
      await agree();
    });
  });
}
