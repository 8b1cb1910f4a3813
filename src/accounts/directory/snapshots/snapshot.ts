import type { AccountState } from '../../../../projections/directory-entry.ts';
import type { PackedAccount } from '../../../../projections/packed-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountEvent } from '../../../domain/account-events.ts';
import type { Position } from '../../../event-store/event-store.ts';

/**
 * Of the form below and of what accounts are folded to. Raise it when either changes: an `Account` with another shape,
 * or an event with another meaning. A snapshot of version 1 may lack an event: that version could skip one when it
 * resumed a subscription to EventStoreDB. Up to version 3 a plain hash sealed the parts, and nothing the position.
 */
export const DIRECTORY_SNAPSHOT_VERSION = 4;
/** To write or read a part takes the event loop a few milliseconds. */
const PART_BYTES = 128 * 1024;
const LINE_FEED = 10;

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

/** An account without its text, which follows: `bytes` long, behind those of the accounts before it. */
type AccountHead = Omit<AccountState, 'packed' | 'lastKeys'> & {
  readonly packed: (Omit<PackedAccount, 'bytes' | 'from' | 'to'> & { readonly bytes: number }) | null;
  readonly lastKeys: readonly (readonly [string, AccountKey])[] | null;
};

/** The first line of a part, as JSON. */
type Head =
  | { readonly anchor: SnapshotAnchor }
  | { readonly events: readonly PlacedEvent[] }
  | { readonly accounts: readonly AccountHead[] };

interface Item {
  /** In the list of the part's first line, as JSON. */
  readonly head: string;
  /** Behind that line. */
  readonly text: Uint8Array;
}

const NO_TEXT = new Uint8Array();

/**
 * The content part by part; a part has at most `partBytes`, or one item. The directory may change between two parts:
 * later parts are newer, which `Directory.restore` allows for.
 */
export function* snapshotParts(
  { anchor, events, accounts }: SnapshotContent,
  partBytes = PART_BYTES,
): Generator<Uint8Array, void> {
  yield Buffer.from(JSON.stringify({ anchor } satisfies Head));
  yield* inParts('events', mapped(events, eventItem), partBytes);
  yield* inParts('accounts', mapped(accounts, accountItem), partBytes);
}

/**
 * Reads what `snapshotParts` wrote; the accounts stay packed, in the bytes of the parts. Rejects where a part can't be
 * read, or is none.
 */
export async function readSnapshot(parts: AsyncIterable<Uint8Array>): Promise<{
  readonly anchor: SnapshotAnchor;
  readonly events: readonly PlacedEvent[];
  readonly accounts: readonly AccountState[];
}> {
  let anchor: SnapshotAnchor | undefined;
  const events: PlacedEvent[] = [];
  const accounts: AccountState[] = [];
  for await (const part of parts) {
    const lineFeed = part.indexOf(LINE_FEED);
    const line = lineFeed === -1 ? part : part.subarray(0, lineFeed);
    const head = JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.length).toString()) as Head;
    if ('anchor' in head) anchor = head.anchor;
    else if ('events' in head) for (const event of head.events) events.push(event);
    else for (const state of statesOf(head.accounts, part, lineFeed + 1)) accounts.push(state);
  }
  if (anchor === undefined) throw new Error('the snapshot of the directory has no beginning');
  return { anchor, events, accounts };
}

function* inParts(
  name: 'events' | 'accounts',
  items: Iterable<Item>,
  partBytes: number,
): Generator<Uint8Array, void> {
  let heads: string[] = [];
  let texts: Uint8Array[] = [];
  let bytes = 0;
  const part = (): Uint8Array => Buffer.concat([Buffer.from(`{"${name}":[${heads.join(',')}]}\n`), ...texts]);
  for (const { head, text } of items) {
    const size = head.length + text.length;
    if (bytes + size > partBytes && heads.length > 0) {
      yield part();
      heads = [];
      texts = [];
      bytes = 0;
    }
    heads.push(head);
    texts.push(text);
    bytes += size;
  }
  if (heads.length > 0) yield part();
}

function* mapped<T>(items: Iterable<T>, toItem: (item: T) => Item): Generator<Item, void> {
  for (const item of items) yield toItem(item);
}

function eventItem(event: PlacedEvent): Item {
  return { head: JSON.stringify(event), text: NO_TEXT };
}

function accountItem({ id, position, revision, unreadable, packed, lastKeys }: AccountState): Item {
  const head = { id, position, revision, unreadable, lastKeys: lastKeys ? [...lastKeys] : null };
  if (packed === undefined)
    return { head: JSON.stringify({ ...head, packed: null } satisfies AccountHead), text: NO_TEXT };
  const { bytes, from, to, ...known } = packed;
  const whole: AccountHead = { ...head, packed: { ...known, bytes: to - from } };
  return { head: JSON.stringify(whole), text: bytes.subarray(from, to) };
}

function* statesOf(heads: readonly AccountHead[], bytes: Uint8Array, start: number): Generator<AccountState> {
  let from = start;
  for (const { packed, lastKeys, ...rest } of heads) {
    const to = from + (packed?.bytes ?? 0);
    if (to > bytes.length) throw new Error('a part of the snapshot of the directory is too short');
    yield {
      ...rest,
      packed: packed === null ? undefined : { ...packed, bytes, from, to },
      lastKeys: lastKeys === null ? undefined : new Map(lastKeys),
    };
    from = to;
  }
}
