import type { AccountState } from '../../../../projections/directory.ts';
import type { Account } from '../../../domain/account.ts';
import type { AccountEvent } from '../../../domain/account-events.ts';
import type { AccountDraft } from '../../../domain/account-evolve.ts';
import type { Position } from '../../../event-store/event-store.ts';

/**
 * Of the text below and of what accounts are folded to. Raise it when either changes: an `Account` with another shape,
 * or an event with another meaning. A snapshot of version 1 may lack an event: that version could skip one when it
 * resumed a subscription to EventStoreDB.
 */
export const DIRECTORY_SNAPSHOT_VERSION = 2;
/** To write or read a part takes the event loop a few milliseconds. */
const PART_CHARACTERS = 128 * 1024;

/** The last account event in a snapshot: it was not made from a log that does not have it there. */
export interface SnapshotAnchor {
  readonly position: Position;
  readonly stream: string;
  readonly revision: number;
  readonly eventId: string;
}

export interface PlacedEvent {
  readonly event: AccountEvent;
  readonly position: Position;
  readonly atMs: number;
}

export interface SnapshotContent {
  readonly anchor: SnapshotAnchor;
  /** Past events that still have to be reported; see `LastKeyEvents`. */
  readonly events: Iterable<PlacedEvent>;
  readonly accounts: Iterable<AccountState>;
}

type PlainMap<T> = T extends ReadonlyMap<infer K, infer V> ? (readonly [K, V])[] : T;
type PlainAccount = { readonly [Field in keyof Account]: PlainMap<Account[Field]> };
type PlainState = {
  readonly [Field in keyof AccountState]: Field extends 'account'
    ? PlainAccount | null
    : Field extends 'lastKeys'
      ? PlainMap<NonNullable<AccountState['lastKeys']>> | null
      : AccountState[Field];
};

type Part =
  | { readonly anchor: SnapshotAnchor }
  | { readonly events: readonly PlacedEvent[] }
  | { readonly accounts: readonly PlainState[] };

/**
 * The content as text, part by part; a part has at most `partCharacters`, or one item. The directory may change between
 * two parts: later parts are newer, which `Directory.restore` allows for.
 */
export function* snapshotParts(
  { anchor, events, accounts }: SnapshotContent,
  partCharacters = PART_CHARACTERS,
): Generator<string, void> {
  yield JSON.stringify({ anchor } satisfies Part);
  yield* inParts(
    'events',
    mapped(events, (event) => JSON.stringify(event)),
    partCharacters,
  );
  yield* inParts('accounts', mapped(accounts, textOf), partCharacters);
}

/** Reads what `snapshotParts` wrote. Rejects where a part can't be read, or is not such a text. */
export async function readSnapshot(parts: AsyncIterable<string>): Promise<{
  readonly anchor: SnapshotAnchor;
  readonly events: readonly PlacedEvent[];
  readonly accounts: readonly AccountState[];
}> {
  let anchor: SnapshotAnchor | undefined;
  const events: PlacedEvent[] = [];
  const accounts: AccountState[] = [];
  for await (const text of parts) {
    const part = JSON.parse(text) as Part;
    if ('anchor' in part) anchor = part.anchor;
    else if ('events' in part) for (const event of part.events) events.push(event);
    else for (const state of part.accounts) accounts.push(stateOf(state));
  }
  if (anchor === undefined) throw new Error('the snapshot of the directory has no beginning');
  return { anchor, events, accounts };
}

function* inParts(
  name: 'events' | 'accounts',
  items: Iterable<string>,
  partCharacters: number,
): Generator<string, void> {
  const part = (): string => `{"${name}":[${texts.join(',')}]}`;
  let texts: string[] = [];
  let characters = 0;
  for (const text of items) {
    if (characters + text.length > partCharacters && texts.length > 0) {
      yield part();
      texts = [];
      characters = 0;
    }
    texts.push(text);
    characters += text.length;
  }
  if (texts.length > 0) yield part();
}

function* mapped<T>(items: Iterable<T>, text: (item: T) => string): Generator<string, void> {
  for (const item of items) yield text(item);
}

function textOf(state: AccountState): string {
  return JSON.stringify(plainState(state));
}

function plainState({ id, account, position, revision, unreadable, lastKeys }: AccountState): PlainState {
  return {
    id,
    position,
    revision,
    unreadable,
    lastKeys: lastKeys === undefined ? null : [...lastKeys],
    account: account === undefined ? null : plainAccount(account),
  };
}

function plainAccount(account: Account): PlainAccount {
  const { profiles, groups, corporates, keys, ...rest } = account;
  return {
    ...rest,
    profiles: [...profiles],
    groups: [...groups],
    corporates: [...corporates],
    keys: [...keys],
  };
}

function stateOf({ account, lastKeys, ...rest }: PlainState): AccountState {
  return {
    ...rest,
    lastKeys: lastKeys === null ? undefined : new Map(lastKeys),
    account: account === null ? undefined : draftOf(account),
  };
}

function draftOf({ profiles, groups, corporates, keys, ...rest }: PlainAccount): AccountDraft {
  return {
    ...rest,
    profiles: new Map(profiles),
    groups: new Map(groups),
    corporates: new Map(corporates),
    keys: new Map(keys),
  };
}
