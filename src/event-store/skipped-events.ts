import {
  type EventStore,
  MAX_PARKED_LOOKED_AT,
  MAX_PARKED_READ,
  type ParkedEvent,
  type PersistentSubscriptions,
  type RecordedEvent,
} from './event-store.ts';
import { operationOf, readOperations } from './operations.ts';

/**
 * The places of events that the operator has skipped: they are judged as if they were not there. A parked one stays
 * parked, and a rebuild, a retry or a restart parks it again; lists and counts leave it out.
 */
export type SkippedEvents = ReadonlySet<string>;

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

/** How many of `counted` were not skipped. Where they are more than `most`, they all count. */
export async function countNotSkipped(
  store: Store,
  parked: {
    readonly counted: number;
    readonly most: number;
    readonly list: () => Promise<readonly Place[]>;
  },
): Promise<number> {
  const { counted, most, list } = parked;
  if (counted === 0 || counted > most) return counted;
  const skipped = await readSkipped(store);
  if (skipped.size === 0) return counted;
  return (await list()).filter((place) => !isSkipped(skipped, place)).length;
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

/** As `countNotSkipped`; `counted` is what the status of the group says. */
export function countParkedByGroup(
  store: Store,
  subscriptions: Pick<PersistentSubscriptions, 'parked'>,
  { group, counted }: { readonly group: string; readonly counted: number },
): Promise<number> {
  const list = async () => (await subscriptions.parked(group)).map(({ event }) => event);
  return countNotSkipped(store, { counted, most: MAX_PARKED_LOOKED_AT, list });
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
