import { type Clock, steadyClock } from '../base/clock.ts';
import { DAY_MS } from '../domain/values/date-time.ts';
import type { EventStore, SubscribeOptions, SubscriptionBatch } from './event-store.ts';
import type { RecordedEvent } from './recorded-event.ts';

const STREAMS_PER_READ = 128;

/** Reads the events of many streams, in the order of the names, with only some of them in memory at a time. */
export async function* readInParts(
  store: Pick<EventStore, 'readStreams'>,
  streams: readonly string[],
): AsyncGenerator<readonly [stream: string, events: RecordedEvent[]], void> {
  for (let at = 0; at < streams.length; at += STREAMS_PER_READ) {
    const some = streams.slice(at, at + STREAMS_PER_READ);
    const histories = await store.readStreams(some);
    for (const [index, stream] of some.entries()) yield [stream, histories[index] ?? []];
  }
}

/**
 * Reads the matching events after `after`, up to the end of the log. Rejects with `STORE_UNAVAILABLE` if the engine is
 * unavailable at the beginning, instead of waiting for it as a subscription does.
 */
export async function* readToEnd(
  store: Pick<EventStore, 'head' | 'subscribe'>,
  {
    signal = new AbortController().signal,
    ...options
  }: Omit<SubscribeOptions, 'signal'> & { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<SubscriptionBatch, void> {
  await store.head();
  for await (const batch of store.subscribe({ ...options, signal })) {
    yield batch;
    if (batch.caughtUp) return;
  }
}

/**
 * The most that a clock may be ahead of the newest event: in a day, a running service records something. It is less than the day
 * after which a notice is old, so that the newest event is never old just because a clock is ahead.
 */
const MAX_AHEAD_MS = (23 / 24) * DAY_MS;

/** The time that was last believed for each open store, and when that was on the steady clock. */
const believed = new WeakMap<object, { readonly atMs: number; readonly readAtMs: number }>();

/**
 * Returns the time by which the age of stored things is judged: now, or 23 hours after the newest event if that is earlier. So a
 * clock that is far ahead makes nothing old, also not by what is recorded meanwhile: an event whose time is more than
 * that later than the time that has passed since an earlier call is not believed. The first call for a store believes its newest
 * event, so a process makes that call when it starts.
 */
export async function timeForAges(
  store: Pick<EventStore, 'readBackwards'>,
  clock: Clock,
  steady: Clock = steadyClock,
): Promise<number> {
  const { events } = await store.readBackwards({ prefixes: [], limit: 1 });
  const newestMs = events[0]?.recordedAtMs;
  if (newestMs === undefined) return clock.now();
  const readAtMs = steady.now();
  const before = believed.get(store);
  const passedMs = before === undefined ? newestMs : before.atMs + (readAtMs - before.readAtMs);
  const isBelieved = newestMs > passedMs && newestMs <= passedMs + MAX_AHEAD_MS;
  const atMs = isBelieved ? newestMs : passedMs;
  believed.set(store, { atMs, readAtMs });
  return Math.min(clock.now(), atMs + MAX_AHEAD_MS);
}
