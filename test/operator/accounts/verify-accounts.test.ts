import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readProgress } from '../../../src/accounts/rows/read-rows.ts';
import { ACCOUNTS, KEYS, MEMBERS, PROGRESS } from '../../../src/accounts/rows/tables.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { world } from '../../../src/base/world.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import {
  type VerifyAccountsOptions,
  verifyAccounts,
} from '../../../src/operator/accounts/verify-accounts.ts';
import { change, drop, put, type Tables, type Write } from '../../../src/tables/tables.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { KeptRows } from '../../support/accounts/kept-rows.ts';
import { allRows } from '../../support/accounts/rows-agree.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';

const OTHER = 'zzzzzzzzzz';

/** Accounts 7 and 8 with rows that have every event. */
async function verified() {
  const stores = openPushStores();
  const { store, clock, author, account, append } = stores;
  const sleep = vi.spyOn(world, 'sleep').mockResolvedValue(undefined);
  onTestFinished(() => sleep.mockRestore());
  const storeId = await storeIdentity(store, clock);
  await account(opened(), groupAdded(), corporateAdded(3), keyIssued(), webhookSet());
  await append('account-8', opened('Eight', 8), keyIssued({ account_id: 8, prefix: OTHER }));
  const kept = new KeptRows(store, clock);
  const { tables } = kept;
  const follow = async (): Promise<void> => {
    await kept.follow();
    await tables.write([change(PROGRESS, 'accounts', { store_id: storeId })]);
  };
  await follow();
  const verify = (options: Partial<VerifyAccountsOptions> = {}) =>
    verifyAccounts({ store, tables, clock, author, repair: false, ...options });
  const found = async (options: Partial<VerifyAccountsOptions> = {}) =>
    (await verify(options)).differences.map(({ accountId, kind }) => `${accountId} ${kind}`);
  return { ...stores, tables, follow, verify, found, sleep };
}

const rowOf = async (tables: Tables, prefix = PREFIX) => {
  const [row] = await tables.get(KEYS, [prefix]);
  if (row === undefined) throw new Error(`there is no row of ${prefix}`);
  return row;
};
const accountOf = async (tables: Tables, id = 7) => {
  const [row] = await tables.get(ACCOUNTS, [id]);
  if (row === undefined) throw new Error(`there is no row of account ${id}`);
  return row;
};

type Fault = readonly [what: string, found: readonly string[], plant: (tables: Tables) => Promise<Write[]>];

const FAULTS: readonly Fault[] = [
  ['an account without a row', ['7 missing'], async () => [drop(ACCOUNTS, 7)]],
  ['an account without any row', ['8 missing'], async () => [drop(ACCOUNTS, 8), drop(KEYS, OTHER)]],
  ['a key without a row', ['7 different'], async () => [drop(KEYS, PREFIX)]],
  ['a corporate without a row', ['7 different'], async () => [drop(MEMBERS, '7:corporate:31')]],
  ['another name', ['8 different'], async () => [change(ACCOUNTS, 8, { name: 'Nine' })]],
  [
    'another hash',
    ['7 different'],
    async (tables) => {
      const settings = (await rowOf(tables)).settings.replaceAll('0000', '1111');
      return [change(KEYS, PREFIX, { settings })];
    },
  ],
  [
    'access that no event gave',
    ['7 different'],
    async (tables) => {
      const access = (await rowOf(tables)).access.replace('false', 'true');
      return [change(KEYS, PREFIX, { access })];
    },
  ],
  ['a position that no event has', ['7 different'], async () => [change(KEYS, PREFIX, { position: 1e9 })]],
  [
    'a key that no event issued',
    ['7 different'],
    async (tables) => [put(KEYS, { ...(await rowOf(tables)), prefix: 'planted123' })],
  ],
  [
    'a corporate that no event added',
    ['8 different'],
    async () => [put(MEMBERS, { ...MEMBER, id: '8:corporate:31', account_id: 8 })],
  ],
  [
    'a key that another account has',
    ['7 different', '8 different'],
    async () => [change(KEYS, PREFIX, { account_id: 8 })],
  ],
  [
    'an account that no event opened',
    ['9 surplus'],
    async (tables) => [
      put(ACCOUNTS, { ...(await accountOf(tables)), id: 9 }),
      put(KEYS, { ...(await rowOf(tables)), prefix: 'planted123', account_id: 9 }),
    ],
  ],
  [
    'a key of an account that no event opened',
    ['9 surplus'],
    async (tables) => [put(KEYS, { ...(await rowOf(tables)), prefix: 'planted123', account_id: 9 })],
  ],
  [
    'a corporate of an account that no event opened',
    ['9 surplus'],
    async () => [put(MEMBERS, { ...MEMBER, id: '9:corporate:31', account_id: 9 })],
  ],
  [
    'an account that is closed without a reason',
    ['8 different'],
    async () => [change(ACCOUNTS, 8, { unreadable: 'made up', unreadable_at: 3, details: null })],
  ],
];
const MEMBER = { kind: 'corporate', number: 31, position: 3, name: 'X', group_id: null };

describe('the rows of accounts', () => {
  test('agree with the events, while events follow that are not applied yet', async () => {
    const { account, append, verify } = await verified();
    await account(onKey('KeySwitchedOff'));
    await append('account-9', opened('Nine', 9));
    expect(await verify()).toMatchObject({ checked: 3, differences: [] });
  });

  test.each(FAULTS)('with %s are found, and repaired once that is asked for', async (_, expected, plant) => {
    const { tables, found, verify, store, account, follow } = await verified();
    const before = await allRows(tables);
    await tables.write(await plant(tables));
    expect(await found()).toEqual(expected);
    expect((await verify({ repair: true })).remaining).toEqual([]);
    const positions = /"position":\d+,/g;
    expect(JSON.stringify(await allRows(tables)).replace(positions, '')).toBe(
      JSON.stringify(before).replace(positions, ''),
    );
    expect(await found()).toEqual([]);
    const { type, data } = (await store.readStream('operations')).at(-1) ?? {};
    expect([type, data]).toEqual(['AgreementRepaired', { what: 'accounts', repaired: expected.length }]);
    await account(onKey('KeySwitchedOff'));
    await follow();
    expect(await found(), 'the follower goes on').toEqual([]);
    expect((await rowOf(tables)).settings).toContain('"active":false');
  });

  test('of one account are verified alone', async () => {
    const { tables, found } = await verified();
    await tables.write([drop(ACCOUNTS, 7), drop(ACCOUNTS, 8)]);
    expect(await found({ accountId: 8 })).toEqual(['8 missing']);
  });

  test('that the follower is writing now are looked at again', async () => {
    const { tables, found, account, sleep, follow } = await verified();
    await account(onKey('KeySwitchedOff'));
    await tables.write([change(ACCOUNTS, 7, { position: 1e9, revision: 5 })]);
    sleep.mockImplementation(async () => {
      await tables.write([change(ACCOUNTS, 7, { position: 3 })]);
      await follow();
    });
    expect(await found()).toEqual([]);
    expect(sleep).toHaveBeenCalledTimes(1);
  });

  test('of an account that cannot be read stay, and are closed', async () => {
    const { tables, found, append, follow, verify } = await verified();
    await append('account-7', { type: 'AccountGuessed', data: {} });
    await follow();
    expect(await found()).toEqual([]);
    await tables.write([change(KEYS, PREFIX, { unreadable: null })]);
    expect(await found()).toEqual(['7 different']);
    expect((await verify({ repair: true })).remaining).toEqual([]);
    expect((await rowOf(tables)).unreadable).toBe('unknown event type AccountGuessed');
  });

  test('of an account with a damaged event are not judged, and the event is named', async () => {
    const { store, tables, verify } = await verified();
    await tables.write([drop(ACCOUNTS, 7), drop(ACCOUNTS, 8)]);
    const readStreams: typeof store.readStreams = async (streams) =>
      (await store.readStreams(streams)).map((events) =>
        events.map((event) =>
          event.type === 'WebhookUrlSet'
            ? { ...event, data: new Unreadable('cut', { isDamage: true }) }
            : event,
        ),
      );
    const found = await verify({ store: replacing(store, { readStreams }), repair: true });
    expect(found.differences).toMatchObject([{ accountId: 8 }]);
    expect(found.damage).toMatchObject([{ event: { stream: 'account-7', revision: 4 }, reason: 'cut' }]);
  });

  test('that the store refuses are named and left', async () => {
    const { tables, verify } = await verified();
    await tables.write([drop(ACCOUNTS, 7), drop(ACCOUNTS, 8)]);
    const write: Tables['write'] = async (writes, options) => {
      if (writes.some(({ key }) => key === 7)) throw new FuelError('ITEM_REFUSED', 'too large');
      return tables.write(writes, options);
    };
    const { remaining } = await verify({ repair: true, tables: replacing(tables, { write }) });
    expect(remaining).toMatchObject([{ accountId: 7, kind: 'missing' }]);
    expect(await tables.get(ACCOUNTS, [8], ['id'])).toEqual([{ id: 8 }]);
  });

  test('are repaired whatever ends the work between two accounts, and a second run does the rest', async () => {
    const { tables, verify, found } = await verified();
    await tables.write([drop(ACCOUNTS, 7), drop(KEYS, OTHER)]);
    let writes = 0;
    const write: Tables['write'] = async (list, options) => {
      writes += 1;
      if (writes === 2) throw new FuelError('STORE_UNAVAILABLE', 'cut off');
      return tables.write(list, options);
    };
    const cut = { repair: true, tables: replacing(tables, { write }) };
    await expect(verify(cut)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await found()).toHaveLength(1);
    await verify({ repair: true });
    expect(await found()).toEqual([]);
  });

  test('of another store, or that are being made, are not verified', async () => {
    const { tables, verify } = await verified();
    const progress = await readProgress(tables);
    if (progress === undefined) throw new Error('there is progress');
    await tables.write([put(PROGRESS, { ...progress, store_id: 'another' })]);
    await expect(verify({ repair: true })).rejects.toMatchObject({ code: 'REFUSED' });
  });
});
