import {
  type EventStore,
  type GroupStatus,
  MAX_PARKED_READ,
  type ParkedEvent,
  type PersistentSubscriptions,
} from './event-store.ts';
import { operationOf, operationsOf } from './operations.ts';
import { type EventRef, type RecordedEvent, textOfRef } from './recorded-event.ts';

/** The places of the events that the operator has skipped (`OperationsState`). */
export type SkippedEvents = ReadonlySet<string>;

/** How many parked events of a group are checked for skipped ones. If there are more, all are counted. */
export const MAX_PARKED_LOOKED_AT = 100;

export const NONE_SKIPPED: SkippedEvents = new Set();

type Store = Pick<EventStore, 'readStream'>;

export function isSkipped(skipped: SkippedEvents, event: EventRef): boolean {
  return skipped.has(textOfRef(event));
}

/** Returns the events that the operator has skipped so far: the same set as before if nothing was skipped meanwhile. */
export async function readSkipped(store: Store): Promise<SkippedEvents> {
  return (await operationsOf(store)).skipped;
}

/** Returns the parked events that were not skipped. */
export async function notSkipped<T extends EventRef>(store: Store, parked: readonly T[]): Promise<T[]> {
  const skipped = parked.length === 0 ? NONE_SKIPPED : await readSkipped(store);
  return parked.filter((event) => !isSkipped(skipped, event));
}

/** Returns the events, of the first `limit`, that a group has parked and that were not skipped. */
export async function parkedByGroup(
  store: Store,
  subscriptions: Pick<PersistentSubscriptions, 'parked'>,
  { group, limit = MAX_PARKED_READ }: { readonly group: string; readonly limit?: number },
): Promise<ParkedEvent[]> {
  const parked = await subscriptions.parked(group, limit);
  const skipped = parked.length === 0 ? NONE_SKIPPED : await readSkipped(store);
  return parked.filter(({ event }) => !isSkipped(skipped, event));
}

/**
 * Returns the position of a group and how many events it has parked, without skipped or erased ones unless there are
 * many. A group that does not exist yet will begin at the start of the log.
 */
export async function groupStatus(
  store: Store,
  subscriptions: Pick<PersistentSubscriptions, 'parked' | 'status'>,
  group: string,
): Promise<GroupStatus> {
  const { position, parked } = (await subscriptions.status(group)) ?? { position: 0, parked: 0 };
  if (parked === 0 || parked > MAX_PARKED_LOOKED_AT) return { position, parked };
  return { position, parked: (await parkedByGroup(store, subscriptions, { group })).length };
}

/** Returns the event that an event of the stream `operations` skips; `undefined` if it does something else. */
export function skippedBy(event: RecordedEvent): EventRef | undefined {
  const operation = operationOf(event);
  if (operation?.type !== 'ParkedSkipped') return undefined;
  const { stream, revision } = operation.data;
  return { stream, revision };
}
