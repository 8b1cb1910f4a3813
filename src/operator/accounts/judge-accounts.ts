import { type FoldedAccount, foldAccount, hiddenAccount } from '../../accounts/rows/fold-account.ts';
import { type RowReads, readProgress } from '../../accounts/rows/read-rows.ts';
import { accountRow, keyRow, memberRows } from '../../accounts/rows/rows-of.ts';
import { type AccountRows, rowsOfAccounts } from '../../accounts/rows/stored-account.ts';
import { ACCOUNTS, KEYS, type KeyRow, MEMBERS } from '../../accounts/rows/tables.ts';
import { accountStream } from '../../domain/account-events.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import { damageOf } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import {
  isDamaged,
  type Position,
  type RecordedEvent,
  SETTINGS_STREAMS,
} from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import type { RowOf, TablePlan } from '../../tables/plan.ts';
import { drop, put, type Write } from '../../tables/tables.ts';

/** `missing`: the account has events and no row; `surplus`: rows and no events. */
export type AccountDifferenceKind = 'missing' | 'different' | 'surplus';

/** An account whose rows are not what its events make. */
export interface AccountDifference {
  readonly accountId: number;
  readonly kind: AccountDifferenceKind;
  /** Makes the rows as they should be, if they still are as they were read. */
  readonly repairs: readonly Write[];
}

interface Place {
  readonly store: Pick<EventStore, 'readStream' | 'readStreams'>;
  readonly tables: RowReads;
}

export interface JudgedAccounts {
  readonly differences: readonly AccountDifference[];
  /** Damaged events. Nothing of their accounts is judged. */
  readonly damage: readonly Damage[];
}

/**
 * Compares the rows of accounts with their streams, up to where the follower has applied these. Rows that the follower is
 * writing now may differ too, so the caller looks at what differs again.
 */
export async function judgeAccounts(ids: readonly number[], place: Place): Promise<JudgedAccounts> {
  const { store, tables } = place;
  const skipped = await readSkipped(store);
  const reached = (await readProgress(tables))?.position ?? 0;
  const rows = await rowsOfAccounts(tables, ids);
  const reachedSince = (await readProgress(tables))?.position ?? 0;
  const idOf = new Map(ids.map((id) => [accountStream(id), id]));
  const differences: AccountDifference[] = [];
  const damage: Damage[] = [];
  for await (const [stream, all] of readInParts(store, [...idOf.keys()])) {
    const accountId = idOf.get(stream) ?? 0;
    const stored = rows(accountId);
    const upTo = Math.max(reached, stored.account?.position ?? 0);
    const events = all.filter(({ position }) => position <= upTo);
    const damaged = events.filter(isDamaged).flatMap((event) => damageOf(event) ?? []);
    for (const each of damaged) damage.push(each);
    if (damaged.length > 0) continue;
    const repairs =
      events.length === 0
        ? await withoutEvents(accountId, stored, place)
        : await withEvents(accountId, { events, stored, skipped, newest: reachedSince }, place);
    if (repairs.length === 0) continue;
    const kind = events.length === 0 ? 'surplus' : stored.account === undefined ? 'missing' : 'different';
    differences.push({ accountId, kind, repairs });
  }
  return { differences, damage };
}

/** An account that has no events is not served: a server hides them, or there never were any. */
async function withoutEvents(
  id: number,
  { account, keys, members }: AccountRows,
  { store }: Place,
): Promise<Write[]> {
  const settings = await store.readStream(`${SETTINGS_STREAMS}${accountStream(id)}`);
  if (settings.length === 0)
    return [
      ...(account === undefined ? [] : [drop(ACCOUNTS, id, { as: account })]),
      ...keys.map((row) => drop(KEYS, row.prefix, { as: row })),
      ...members.map((row) => drop(MEMBERS, row.id, { as: row })),
    ];
  if (account === undefined) return [];
  const position = account.unreadable_at ?? settings.at(-1)?.position ?? account.position;
  const hidden = hiddenAccount(id, position);
  const closed = { ...accountRow(hidden, account.position), revision: account.revision };
  return [...changed(ACCOUNTS, closed, account), ...keys.flatMap((row) => closedKey(row, hidden))];
}

interface Read {
  readonly events: readonly RecordedEvent[];
  readonly stored: AccountRows;
  readonly skipped: SkippedEvents;
  /** Up to here the follower has applied the log since. No row can be made for a later event. */
  readonly newest: Position;
}

async function withEvents(
  id: number,
  { events, stored, skipped, newest }: Read,
  place: Place,
): Promise<Write[]> {
  const owners = await ownersOf(id, events, place);
  const folded = foldAccount(id, events, { skipped, ownerOf: (prefix) => owners.get(prefix)?.account });
  const position = events.at(-1)?.position ?? 0;
  const keyOf = new Map([...owners].flatMap(([prefix, { row }]) => (row ? [[prefix, row] as const] : [])));
  for (const row of stored.keys) keyOf.set(row.prefix, row);
  const memberOf = new Map(stored.members.map((row) => [row.id, row]));
  const members = [...memberRows(folded, position)];
  const expected = new Set(members.map((row) => row.id));
  const lostKeys = stored.keys.filter(({ prefix }) => !folded.keys.has(prefix));
  const lostMembers = stored.members.filter((row) => !expected.has(row.id));
  const isUnreadable = folded.unreadable !== undefined;
  return [
    ...changed(ACCOUNTS, accountRow(folded, position), stored.account, newest),
    ...[...folded.keys.values()].flatMap((key) =>
      changed(KEYS, keyRow(folded, key, position), keyOf.get(key.key.prefix), newest),
    ),
    ...lostKeys.flatMap((row) =>
      isUnreadable ? closedKey(row, folded) : [drop(KEYS, row.prefix, { as: row })],
    ),
    ...members.flatMap((row) => changed(MEMBERS, row, memberOf.get(row.id), newest)),
    ...(isUnreadable ? [] : lostMembers.map((row) => drop(MEMBERS, row.id, { as: row }))),
  ];
}

/** A key of an account that can't be read, of which its stream says nothing any more. */
function closedKey(row: KeyRow, { unreadable }: FoldedAccount): Write[] {
  const closed = { ...row, unreadable: unreadable?.reason ?? '', webhook: null, disabled_at: null };
  return changed(KEYS, closed, row);
}

/**
 * Returns the write that makes a row as it should be. The event that a row was made for is not compared, but it can't be later
 * than `newest`.
 */
function changed<T extends TablePlan>(
  table: T,
  expected: RowOf<T> & HasPosition,
  stored: (RowOf<T> & HasPosition) | undefined,
  newest: Position = Infinity,
): Write[] {
  if (stored === undefined) return [put(table, expected, 'missing')];
  const isSame = sameJson({ ...stored, position: 0 }, { ...expected, position: 0 });
  return isSame && stored.position <= newest ? [] : [put(table, expected, { as: stored })];
}

interface HasPosition {
  readonly position: Position;
}

interface Owner {
  /** The account that was issued the key first, if it is another one. */
  readonly account: number | undefined;
  readonly row: KeyRow | undefined;
}

/** Returns who has the keys that these events issue. A row that names another account is believed only if its events do too. */
async function ownersOf(
  id: number,
  events: readonly RecordedEvent[],
  { store, tables }: Place,
): Promise<ReadonlyMap<string, Owner>> {
  const issued = new Map(events.flatMap((event) => issuedIn(event, id)));
  const rows = new Map((await tables.get(KEYS, [...issued.keys()])).map((row) => [row.prefix, row]));
  const owners = new Map<string, Owner>();
  for (const [prefix, position] of issued) {
    const row = rows.get(prefix);
    const other = row === undefined || row.account_id === id ? undefined : row.account_id;
    const others = other === undefined ? [] : await store.readStream(accountStream(other));
    const isTheirs = others.some((event) =>
      issuedIn(event, other ?? id).some(([named, at]) => named === prefix && at < position),
    );
    owners.set(prefix, { row, account: isTheirs ? other : undefined });
  }
  return owners;
}

function issuedIn({ type, data, position }: RecordedEvent, accountId: number): [string, Position][] {
  if (type !== 'KeyIssued') return [];
  const { prefix, account_id } = (data ?? {}) as { readonly prefix?: unknown; readonly account_id?: unknown };
  return typeof prefix === 'string' && account_id === accountId ? [[prefix, position]] : [];
}
