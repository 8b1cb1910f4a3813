import { ACCOUNT_STREAMS, accountStream } from '../../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import { type Position, type RecordedEvent, SETTINGS_STREAMS } from '../../event-store/recorded-event.ts';
import { type SkippedEvents, skippedBy } from '../../event-store/skipped-events.ts';
import { put, type Tables, type Write } from '../../tables/tables.ts';
import { readAccountEvent } from '../read-account-event.ts';
import { type FoldedAccount, foldAccount, hiddenAccount } from './fold-account.ts';
import { accountRow, keyRow, memberRows } from './rows-of.ts';
import { everyKey } from './stored-account.ts';
import { ACCOUNTS, KEYS, type KeyRow, MEMBERS, memberId } from './tables.ts';

/** The streams that decide about accounts: their own, those with the settings by which a server hides their events, and skips. */
export const ACCOUNT_HISTORY: readonly string[] = [
  ACCOUNT_STREAMS,
  `${SETTINGS_STREAMS}${ACCOUNT_STREAMS}`,
  OPERATIONS_STREAM,
];

const ACCOUNT_STREAM = new RegExp(`^${ACCOUNT_STREAMS}(0|[1-9][0-9]*)$`);

/** An account that events change, and the events of its stream. */
export interface ChangedAccount {
  readonly id: number;
  /** Those that are new; all up to `position` if the account `isWhole`. */
  readonly events: readonly RecordedEvent[];
  /** The position of the last event that changes it, which may be one of another stream. */
  readonly position: Position;
  /** True if all of its rows are rebuilt, since an event was skipped or is shown again. */
  readonly isWhole: boolean;
}

/** Returns the accounts that these events of the log change, in the order of their first events. */
export function changedBy(events: readonly RecordedEvent[]): ChangedAccount[] {
  const changed = new Map<number, { -readonly [K in keyof ChangedAccount]: ChangedAccount[K] }>();
  for (const event of events) {
    const { stream, position } = event;
    const isOwn = stream.startsWith(ACCOUNT_STREAMS);
    const id = accountIn(isOwn ? stream : streamChangedBy(event));
    if (id === undefined) continue;
    const account = changed.get(id) ?? { id, events: [], position, isWhole: false };
    changed.set(id, account);
    account.position = position;
    if (isOwn) (account.events as RecordedEvent[]).push(event);
    else account.isWhole = true;
  }
  return [...changed.values()];
}

/** Returns the ids of the accounts whose streams have these events, each once. */
export function accountsOfEvents(events: readonly RecordedEvent[]): number[] {
  return [...new Set(events.map(({ stream }) => accountIn(stream)))].filter((id) => id !== undefined);
}

/** Returns the stream whose events are to be judged again after this event of another stream. */
function streamChangedBy(event: RecordedEvent): string {
  if (event.stream === OPERATIONS_STREAM) return skippedBy(event)?.stream ?? '';
  return event.stream.slice(SETTINGS_STREAMS.length);
}

function accountIn(stream: string): number | undefined {
  const id = Number(ACCOUNT_STREAM.exec(stream)?.[1]);
  return Number.isSafeInteger(id) ? id : undefined;
}

export interface RowsPlace {
  readonly store: Pick<EventStore, 'readStreams'>;
  readonly tables: Pick<Tables, 'get' | 'find'>;
  readonly skipped: SkippedEvents;
}

/**
 * Makes the rows of changed accounts. What they have is made from the accounts' streams alone, never from other rows, so it is
 * right whatever is stored. Each row counts only if the stored one was made for an earlier event. `closed` are the accounts that
 * these events make unreadable.
 */
export async function writesOf(
  changed: readonly ChangedAccount[],
  place: RowsPlace,
): Promise<{ readonly writes: Write[]; readonly closed: readonly FoldedAccount[] }> {
  const { tables, skipped } = place;
  const histories = await historiesOf(changed, place);
  const owners = await ownersOf(histories, place);
  const terms = { skipped, ownerOf: (prefix: string) => owners.get(prefix) };
  const writes: { accounts: Write[]; keys: Write[]; members: Write[] } = {
    accounts: [],
    keys: [],
    members: [],
  };
  const closed: FoldedAccount[] = [];
  for (const each of changed) {
    const { id, events, position, isWhole } = each;
    const history = histories.get(id) ?? [];
    const isHidden = history.length === 0;
    if (isHidden && (await tables.get(ACCOUNTS, [id])).length === 0) continue;
    const folded = isHidden ? hiddenAccount(id, position) : foldAccount(id, history, terms);
    const badAt = folded.unreadable?.position;
    if (badAt !== undefined && (isWhole || events.some((event) => event.position === badAt)))
      closed.push(folded);
    const below = { below: { position } };
    writes.accounts.push(put(ACCOUNTS, accountRow(folded, position), below));
    for (const row of await keyRowsOf(folded, each, tables)) writes.keys.push(put(KEYS, row, below));
    for (const row of memberRows(folded, position, isWhole ? undefined : membersNamedIn(each)))
      writes.members.push(put(MEMBERS, row, below));
  }
  return { writes: [...writes.accounts, ...writes.keys, ...writes.members], closed };
}

/** Returns the events of each account from its first one on, up to its position. */
async function historiesOf(
  changed: readonly ChangedAccount[],
  { store }: RowsPlace,
): Promise<ReadonlyMap<number, readonly RecordedEvent[]>> {
  const isNew = ({ events, isWhole }: ChangedAccount) => !isWhole && events[0]?.revision === 0;
  const histories = new Map(changed.filter(isNew).map(({ id, events }) => [id, events]));
  const known = new Map(
    changed.filter(({ id }) => !histories.has(id)).map((each) => [accountStream(each.id), each]),
  );
  for await (const [stream, events] of readInParts(store, [...known.keys()])) {
    const { id = 0, position: upTo = 0 } = known.get(stream) ?? {};
    histories.set(
      id,
      events.filter(({ position }) => position <= upTo),
    );
  }
  return histories;
}

/** Returns the account of each key that is issued in these histories: the stored one, or the first one to be issued it. */
async function ownersOf(
  histories: ReadonlyMap<number, readonly RecordedEvent[]>,
  { tables, skipped }: RowsPlace,
): Promise<ReadonlyMap<string, number>> {
  const issued = [...histories].flatMap(([id, events]) =>
    events.flatMap((event) => issuedIn(id, event, skipped)),
  );
  const prefixes = [...new Set(issued.map(({ prefix }) => prefix))];
  const stored = await tables.get(KEYS, prefixes, ['prefix', 'account_id']);
  const owners = new Map(stored.map(({ prefix, account_id }) => [prefix, account_id]));
  for (const { prefix, id } of issued.toSorted((a, b) => a.position - b.position))
    if (!owners.has(prefix)) owners.set(prefix, id);
  return owners;
}

function issuedIn(id: number, recorded: RecordedEvent, skipped: SkippedEvents) {
  if (recorded.type !== 'KeyIssued') return [];
  const read = readAccountEvent(recorded, skipped);
  if (!read.ok || read.event.type !== 'KeyIssued' || read.event.data.account_id !== id) return [];
  return [{ prefix: read.event.data.prefix, id, position: recorded.position }];
}

/** Returns the rows of an account's keys, if these events can change them. */
async function keyRowsOf(
  folded: FoldedAccount,
  { events, position, isWhole }: ChangedAccount,
  tables: RowsPlace['tables'],
): Promise<KeyRow[]> {
  const { id, unreadable } = folded;
  if (!isWhole && unreadable === undefined && events.every(isOfMember)) return [];
  const rows = [...folded.keys.values()].map((key) => keyRow(folded, key, position));
  if (unreadable === undefined) return rows;
  // The stream may no longer show the events of some keys.
  const known = await Array.fromAsync(everyKey(tables, id));
  const lost = known.filter(({ prefix }) => !folded.keys.has(prefix));
  const closed = { position, unreadable: unreadable.reason, webhook: null, disabled_at: null };
  return [...rows, ...lost.map((row) => ({ ...row, ...closed }))];
}

type Named = Readonly<Record<string, unknown>> | null;

function isOfMember({ data }: RecordedEvent): boolean {
  const named = data as Named;
  return named?.corporate_id !== undefined || named?.corporate_group_id !== undefined;
}

/** Returns the ids of the rows of the corporates and groups that these events name. */
function membersNamedIn({ id, events }: ChangedAccount): ReadonlySet<string> {
  const named = new Set<string>();
  for (const { data } of events) {
    const { corporate_id: corporate, corporate_group_id: group } = (data ?? {}) as NonNullable<Named>;
    if (typeof corporate === 'number') named.add(memberId(id, 'corporate', corporate));
    else if (typeof group === 'number') named.add(memberId(id, 'group', group));
  }
  return named;
}

/** Makes the rows of an account as unreadable, since the store refuses those that its events make. */
export async function refusedWrites(
  { id, events, position }: ChangedAccount,
  reason: string,
  tables: RowsPlace['tables'],
): Promise<Write[]> {
  const hidden = hiddenAccount(id, position);
  const folded = { ...hidden, revision: events.at(-1)?.revision ?? -1, unreadable: { position, reason } };
  const keys = await keyRowsOf(folded, { id, events, position, isWhole: true }, tables);
  const below = { below: { position } };
  return [put(ACCOUNTS, accountRow(folded, position), below), ...keys.map((row) => put(KEYS, row, below))];
}
