import type { Account } from '../../domain/account.ts';
import {
  ACCOUNT_STREAMS,
  type AccountEvent,
  accountStream,
  isAccountEventType,
} from '../../domain/account-events.ts';
import { type AccountDraft, nextDraft } from '../../domain/account-evolve.ts';
import { decodeStrict, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import {
  type FirstShown,
  missingBefore,
  type Position,
  type RecordedEvent,
  SETTINGS_STREAMS,
  streamHiddenBy,
} from '../../event-store/recorded-event.ts';
import { isSkipped, NONE_SKIPPED, type SkippedEvents } from '../../event-store/skipped-events.ts';
import type { Directory, DirectoryEvent, ReadAccountEvent } from './fold/directory.ts';
import type { DirectoryAccount } from './fold/directory-entry.ts';
import { type SharedRows, statesOf } from './rows/shared-rows.ts';

function accountIdOf(stream: string): number {
  return Number(stream.slice(ACCOUNT_STREAMS.length));
}

export function readAccountEvent(
  recorded: RecordedEvent,
  skipped: SkippedEvents = NONE_SKIPPED,
): ReadAccountEvent {
  if (isSkipped(skipped, recorded)) {
    const data = { account_id: accountIdOf(recorded.stream) };
    return { ok: true, event: { type: 'EventSkipped', data }, atMs: occurredAtMs(recorded) };
  }
  const decoded = decodeStrict(recorded);
  if (!decoded.ok) return decoded;
  if (!isAccountEventType(decoded.type)) {
    return { ok: false, reason: `${decoded.type} does not belong in an account's stream` };
  }
  const atMs = occurredAtMs(recorded);
  return { ok: true, event: { type: decoded.type, data: decoded.data } as AccountEvent, atMs };
}

/**
 * Folds all events of an account's stream. Returns the account, `undefined` if there are no events, or a fault that
 * names the first event that can't be read or can't follow those before it.
 */
export function foldRecorded(
  history: readonly RecordedEvent[],
  skipped: SkippedEvents,
): { readonly account: Account | undefined } | { readonly fault: string } {
  const [first] = history;
  if (first !== undefined && first.revision > 0) return { fault: missingBefore(first) };
  let account: AccountDraft | undefined;
  for (const recorded of history) {
    const { stream, revision, type } = recorded;
    const read = readAccountEvent(recorded, skipped);
    const next = read.ok ? nextDraft(account, read, accountIdOf(stream)) : { fault: read.reason };
    if ('fault' in next) return { fault: `event ${revision} of its stream, ${type}: ${next.fault}` };
    account = next;
  }
  return { account };
}

/** The streams that a directory follows: those of accounts, and those with the settings by which a server hides their events. */
export const DIRECTORY_STREAMS: readonly string[] = [
  ACCOUNT_STREAMS,
  `${SETTINGS_STREAMS}${ACCOUNT_STREAMS}`,
];

/**
 * Returns the first event that an account's stream still shows, if these settings hide the ones before it. Reads one event if
 * the settings can hide any, otherwise none.
 */
export async function firstShown(
  store: Pick<EventStore, 'readStream'>,
  settings: RecordedEvent,
): Promise<(FirstShown & { readonly position: Position }) | undefined> {
  const stream = streamHiddenBy(settings);
  if (stream === undefined) return undefined;
  const [first] = await store.readStream(stream, { limit: 1 });
  return first?.revision === 0
    ? undefined
    : { stream, revision: first?.revision, position: settings.position };
}

/** Converts a recorded event to the form that the directory applies. */
export function directoryEvent(recorded: RecordedEvent, skipped: SkippedEvents): DirectoryEvent {
  const { position, stream, revision } = recorded;
  return { position, stream, revision, decoded: readAccountEvent(recorded, skipped) };
}

/** Applies a recorded event of an account's stream. Returns the account if this event made it unreadable. */
export function applyToDirectory(
  directory: Directory,
  recorded: RecordedEvent,
  skipped: SkippedEvents = NONE_SKIPPED,
): DirectoryAccount | undefined {
  return directory.apply(directoryEvent(recorded, skipped));
}

/**
 * Restores a directory to which nothing has been applied yet. Accounts that could not be read are folded again, since
 * this version may be able to read what the version that saved them could not. An account stays unreadable if its
 * stream no longer has all the events that were applied. Rejects with `STORE_UNAVAILABLE`, with nothing changed.
 */
export async function restoreDirectory(
  directory: Directory,
  loaded: SharedRows,
  { store, skipped }: { readonly store: EventStore; readonly skipped: SkippedEvents },
): Promise<void> {
  const states = [...statesOf(loaded)];
  const unreadable = states.filter((state) => state.unreadable !== null);
  const streams = unreadable.map(({ id }) => accountStream(id));
  const histories = await Array.fromAsync(readInParts(store, streams));
  directory.restore(states, loaded.position);
  for (const [index, { id, revision }] of unreadable.entries()) {
    const [, events = []] = histories[index] ?? [];
    if ((events.at(-1)?.revision ?? -1) < revision) continue;
    const history = events.filter(({ position }) => position <= loaded.position); // the follower applies later ones
    directory.refold(
      id,
      history.map((event) => directoryEvent(event, skipped)),
    );
  }
}
