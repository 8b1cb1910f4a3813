import { setImmediate as nextTurn } from 'node:timers/promises';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { reasonOf } from '../../errors.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../../event-store/batch-bytes.ts';
import type { GroupConsumer, GroupEvent, PersistentSubscriptions } from '../../event-store/event-store.ts';
import { isolateFailures } from '../../isolate.ts';
import type { Log } from '../../log.ts';
import { pause } from '../../pause.ts';
import { type RetryOptions, retryWhileUnavailable } from '../../retry.ts';
import type { FanOut, FanOutResult } from './fan-out.ts';

export const DELIVERIES_GROUP = 'deliveries';

export interface BatchLimits<T> {
  readonly mostItems: number;
  readonly mostBytes: number;
  readonly bytesOf: (item: T) => number;
}

const BATCH: BatchLimits<GroupEvent> = {
  mostItems: 100,
  mostBytes: MAX_BATCH_BYTES,
  bytesOf: ({ event }) => eventBytes(event),
};
const BUFFER = 400;
/** What a killed process held is handed out again after this. */
const ACK_TIMEOUT_MS = 5_000;
/** As good as never: only what can't be read is parked, and that at once. A store that is unavailable costs no event. */
const MAX_RETRIES = 2 ** 31 - 1;

export interface RunFanOutOptions {
  readonly subscriptions: PersistentSubscriptions;
  readonly fanOut: FanOut;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** What comes within this time of a batch goes into the next one: for engines to which each batch is round trips. */
  readonly gatherMs?: number | undefined;
  /** Called once the subscription is there. */
  readonly onConnected?: () => void;
}

/**
 * Fans out every transaction event from the very start of the log until `signal` aborts. An event is
 * acknowledged after what it calls for is stored. While a store is unavailable no further event is taken; an event
 * that can't be handled is parked with its reason. Rejects with what else the subscription rejects with.
 */
export async function runFanOut(options: RunFanOutOptions): Promise<void> {
  await retryWhileUnavailable((available) => consume(options, available), retryOptions(options));
}

async function consume(options: RunFanOutOptions, available: () => void): Promise<void> {
  const { subscriptions, signal, onConnected } = options;
  await prepareGroup(subscriptions);
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: BUFFER, signal: until });
  available();
  onConnected?.();
  for await (const events of inBatches(consumer, BATCH)) {
    const beganAtMs = performance.now();
    try {
      await retryWhileUnavailable(
        async () => acknowledge(consumer, await handle(options, events), options.log),
        {
          ...retryOptions(options),
          fields: { events: events.length },
        },
      );
    } catch (error) {
      failed.abort(); // or else leaving the loop would wait for the next event
      throw error;
    }
    const leftMs = beganAtMs + (options.gatherMs ?? 0) - performance.now();
    if (leftMs > 0) await pause(leftMs, until);
  }
}

function retryOptions({ log, signal }: RunFanOutOptions): RetryOptions {
  return { log, signal, component: 'fan-out' };
}

/** What was parked is tried once more: this version may read what another could not. */
async function prepareGroup(subscriptions: PersistentSubscriptions): Promise<void> {
  await subscriptions.ensureGroup(DELIVERIES_GROUP, {
    prefixes: [TRANSACTION_STREAMS],
    ackTimeoutMs: ACK_TIMEOUT_MS,
    maxRetries: MAX_RETRIES,
  });
  await subscriptions.replayParked(DELIVERIES_GROUP);
}

/** What can't be handled alone is parked: it must not hold up the others. */
async function handle({ fanOut }: RunFanOutOptions, events: readonly GroupEvent[]): Promise<FanOutResult[]> {
  const results: FanOutResult[] = [];
  const failed = await isolateFailures(events, async (some) => {
    for (const result of await fanOut.handle(some)) results.push(result);
  });
  return [
    ...results,
    ...failed.map(({ item, error }) => ({ kind: 'park', event: item, reason: reasonOf(error) }) as const),
  ];
}

async function acknowledge(
  consumer: GroupConsumer,
  results: readonly FanOutResult[],
  log: Log,
): Promise<void> {
  await consumer.ack(results.filter(({ kind }) => kind === 'ack').map(({ event }) => event));
  for (const result of results) {
    if (result.kind === 'ack') continue;
    const { kind, event, reason } = result;
    const { position, stream, type } = event.event;
    if (kind === 'park') {
      await consumer.park(event, reason);
      log.error(
        { position, stream, type, reason },
        'event parked: it calls for no delivery until it is retried',
      );
    } else {
      await consumer.retry(event, { reason, delayMs: result.delayMs });
      log.warn({ position, stream, reason }, 'deliveries wait: their account can not be read');
    }
  }
}

/**
 * Groups what an iteration has at hand, without ever waiting for more: a batch holds between one and
 * `mostItems` items, and takes no further one once it has reached `mostBytes`. Ends with the iteration and rejects with it.
 */
export async function* inBatches<T>(
  items: AsyncIterable<T>,
  { mostItems, mostBytes, bytesOf }: BatchLimits<T>,
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
      next.catch(() => undefined); // it is awaited in the next round, after this batch was handled
      while (batch.length < mostItems && bytes < mostBytes) {
        const more = await Promise.race([next, nextTurn(undefined)]);
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
