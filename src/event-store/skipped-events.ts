import {
  type EventStore,
  type GroupStatus,
  MAX_PARKED_READ,
  type ParkedEvent,
  type PersistentSubscriptions,
} from './event-store.ts';
import { operationOf, readOperations } from './operations.ts';
import type { RecordedEvent } from './recorded-event.ts';

/**
 * The places of events that the operator has skipped: they are judged as if they were not there. A parked one stays
 * parked, and a rebuild, a retry or a restart parks it again; lists and counts leave it out.
 */
export type SkippedEvents = ReadonlySet<string>;

/** So many parked events of a group are looked at to tell which of them still matter. */
export const MAX_PARKED_LOOKED_AT = 100;

export const NONE_SKIPPED: SkippedEvents = new Set();

type Store = Pick<EventStore, 'readStream'>;
export type Place = Pick<RecordedEvent, 'stream' | 'revision'>;

export function isSkipped(skipped: SkippedEvents, place: Place): boolean {
  return skipped.has(keyOf(place));
}

export async function readSkipped(store: Store): Promise<SkippedEvents> {
  const operations = await readOperations(store);
  return new Set(operations.flatMap(({ type, data }) => (type === 'ParkedSkipped' ? [keyOf(data)] : [])));
}

/** Of parked events those that were not skipped. */
export async function notSkipped<T extends Place>(store: Store, parked: readonly T[]): Promise<T[]> {
  const skipped = parked.length === 0 ? NONE_SKIPPED : await readSkipped(store);
  return parked.filter((place) => !isSkipped(skipped, place));
}

/** What a group has parked, of the first `limit`, without what was skipped. */
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
 * How far a group is, and what it has parked: without what was skipped or erased, unless there are many. One that does
 * not exist yet will begin at the start of the log.
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

export function withSkipped(skipped: SkippedEvents, place: Place): SkippedEvents {
  return new Set([...skipped, keyOf(place)]);
}

/** The place that an event of the stream `operations` skips; `undefined` where it is about something else. */
export function skippedBy(event: RecordedEvent): Place | undefined {
  const operation = operationOf(event);
  if (operation?.type !== 'ParkedSkipped') return undefined;
  const { stream, revision } = operation.data;
  return { stream, revision };
}

function keyOf({ stream, revision }: Place): string {
  return `${stream}@${revision}`;
}
