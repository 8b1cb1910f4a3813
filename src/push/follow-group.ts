import { reasonOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { world } from '../base/world.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../event-store/batch-bytes.ts';
import type {
  GroupConsumer,
  GroupEvent,
  GroupSettings,
  PersistentSubscriptions,
} from '../event-store/event-store.ts';

export interface BatchLimits<T> {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly bytesOf: (item: T) => number;
}

const BATCH: BatchLimits<GroupEvent> = {
  maxItems: 100,
  maxBytes: MAX_BATCH_BYTES,
  bytesOf: ({ event }) => eventBytes(event),
};

export interface GroupFollower {
  readonly group: string;
  readonly settings: GroupSettings;
  readonly bufferSize: number;
  readonly subscriptions: Pick<PersistentSubscriptions, 'ensureGroup' | 'consume' | 'replayParked'>;
  /** As the log names it: `fan-out`. */
  readonly component: string;
  /** Acknowledges, retries or parks each of the events. Where it rejects, those that it did not are handed out again. */
  readonly handle: (
    consumer: GroupConsumer,
    events: readonly GroupEvent[],
    until: AbortSignal,
  ) => Promise<void>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with `undefined` when the subscription is connected, and with the reason when it is not. */
  readonly onState?: ((missing: string | undefined) => void) | undefined;
}

/**
 * Follows a group from the start of the log, in batches of the events that are ready, until `signal` aborts. While a store
 * is unavailable it waits. Rejects with any other error of the subscription, and as `handle` does.
 */
export async function followGroup(follower: GroupFollower): Promise<void> {
  const { group, component, log, signal, onState } = follower;
  await retryWhileUnavailable(
    async (available) => {
      onState?.(`the group of the ${group} is being made ready`);
      try {
        await consume(follower, available);
      } catch (error) {
        onState?.(reasonOf(error));
        throw error;
      }
    },
    { log, signal, component },
  );
}

async function consume(follower: GroupFollower, available: () => void): Promise<void> {
  const { group, settings, bufferSize, subscriptions, handle, signal, onState } = follower;
  await subscriptions.ensureGroup(group, settings);
  await subscriptions.replayParked(group); // this version may read what another could not
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const consumer = subscriptions.consume(group, { bufferSize, signal: until, onState });
  available();
  for await (const events of inBatches(consumer, BATCH)) {
    try {
      await handle(consumer, events, until);
    } catch (error) {
      failed.abort(); // otherwise leaving the loop would wait for the next event
      throw error;
    }
  }
}

/**
 * Groups the items that an iteration has ready, without waiting for more: a batch holds one to `maxItems` items, and
 * gets no more once it has `maxBytes`. Ends with the iteration and rejects with it.
 */
export async function* inBatches<T>(
  items: AsyncIterable<T>,
  { maxItems, maxBytes, bytesOf }: BatchLimits<T>,
): AsyncGenerator<T[], void> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const first = await next;
      if (first.done === true) return;
      const batch = [first.value];
      let bytes = bytesOf(first.value);
      next = iterator.next();
      next.catch(() => undefined); // it is awaited in the next round, when this batch is handled
      while (batch.length < maxItems && bytes < maxBytes) {
        const more = await Promise.race([next, world.nextTurn(undefined)]);
        if (more === undefined || more.done === true) break;
        batch.push(more.value);
        bytes += bytesOf(more.value);
        next = iterator.next();
        next.catch(() => undefined);
      }
      yield batch;
    }
  } finally {
    await iterator.return?.();
  }
}
