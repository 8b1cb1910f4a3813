import { steadyClock } from '../../base/clock.ts';
import { reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { batchAttributes, traceBatch } from '../../base/tracing/spans.ts';
import { world } from '../../base/world.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../../event-store/batch-bytes.ts';
import type { GroupConsumer, GroupEvent, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { FanOut, FanOutResult } from './fan-out.ts';

export const DELIVERIES_GROUP = 'deliveries';

/** The events of a killed process are handed out again after this time. */
const ACK_TIMEOUT_MS = 5_000;
const SETTINGS = { prefixes: [TRANSACTION_STREAMS], ackTimeoutMs: ACK_TIMEOUT_MS };
const BUFFER = 400;
const BATCH: BatchLimits<GroupEvent> = {
  maxItems: 100,
  maxBytes: MAX_BATCH_BYTES,
  bytesOf: ({ event }) => eventBytes(event),
};
/** Each batch costs commits or round trips, so after a batch of this many events the next one starts no sooner than this. */
const MANY = 20;
const MANY_TOGETHER_MS = 10;
const component = 'fan-out';

interface RunFanOutOptions {
  readonly fanOut: FanOut;
  readonly subscriptions: Pick<PersistentSubscriptions, 'ensureGroup' | 'consume' | 'replayParked'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with `undefined` when the subscription is connected, and with the reason when it is not. */
  readonly onState?: ((missing: string | undefined) => void) | undefined;
}

/**
 * Fans out every transaction event from the start of the log until `signal` aborts. An event is acknowledged after its
 * deliveries are stored. While a store is unavailable no further event is taken. An event that can't be handled is parked
 * with its reason. Rejects with other errors of the subscription.
 */
export async function runFanOut(options: RunFanOutOptions): Promise<void> {
  const { log, signal, onState } = options;
  await retryWhileUnavailable(
    async (available) => {
      onState?.('the group of the deliveries is being made ready');
      try {
        await consume(options, available);
      } catch (error) {
        onState?.(reasonOf(error));
        throw error;
      }
    },
    { log, signal, component },
  );
}

async function consume(options: RunFanOutOptions, available: () => void): Promise<void> {
  const { subscriptions, fanOut, log, signal, onState } = options;
  await subscriptions.ensureGroup(DELIVERIES_GROUP, SETTINGS);
  await subscriptions.replayParked(DELIVERIES_GROUP); // this version may be able to read them
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: BUFFER, signal: until, onState });
  available();
  for await (const events of inBatches(consumer, BATCH)) {
    const startedAtMs = steadyClock.now();
    const span = traceBatch('fan out events');
    const work = async () => acknowledge(consumer, await fanOutEach(fanOut, events), log);
    try {
      await retryWhileUnavailable(work, { log, signal, component, fields: { events: events.length } });
      span.end(batchAttributes(events.length, events.at(-1)?.event.position));
    } catch (error) {
      failed.abort(); // otherwise leaving the loop would wait for the next event
      throw error;
    }
    const leftMs = startedAtMs + MANY_TOGETHER_MS - steadyClock.now();
    if (events.length >= MANY && leftMs > 0) await pause(leftMs, until);
  }
}

/** Fans out a batch. An event that can't be handled even alone is parked, so that it does not delay the others. */
async function fanOutEach(fanOut: FanOut, events: readonly GroupEvent[]): Promise<FanOutResult[]> {
  const results: FanOutResult[] = [];
  const failed = await isolateFailures(events, async (some) => {
    for (const result of await fanOut.handle(some)) results.push(result);
  });
  for (const { item, error } of failed) results.push({ kind: 'park', event: item, reason: reasonOf(error) });
  return results;
}

async function acknowledge(
  consumer: GroupConsumer,
  results: readonly FanOutResult[],
  log: Log,
): Promise<void> {
  await world.nextTurn(); // the first attempts are sent before this thread's next commit
  await consumer.ack(results.filter(({ kind }) => kind === 'ack').map(({ event }) => event));
  for (const result of results) {
    if (result.kind === 'ack') continue;
    const { kind, event, reason } = result;
    const { position, stream, type } = event.event;
    if (kind === 'park') {
      await consumer.park(event, reason);
      log.error(
        { position, stream, type, reason },
        'fan-out parked an event: it creates no delivery until it is retried',
      );
    } else {
      await consumer.retry(event, { reason, delayMs: result.delayMs });
      log.warn({ position, stream, reason }, 'deliveries wait: their account cannot be read');
    }
  }
}

interface BatchLimits<T> {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly bytesOf: (item: T) => number;
}

/**
 * Groups the items that an iteration has ready, without waiting for more. A batch has one to `maxItems` items, and takes
 * no more once it has `maxBytes`. Ends with the iteration, and rejects with it.
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
      next.catch(() => undefined); // it is awaited after this batch was handled
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
