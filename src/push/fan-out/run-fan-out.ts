import { reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { world } from '../../base/world.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { GroupConsumer, GroupEvent } from '../../event-store/event-store.ts';
import { followGroup, type GroupFollower } from '../follow-group.ts';
import type { FanOut, FanOutResult } from './fan-out.ts';

export const DELIVERIES_GROUP = 'deliveries';

const BUFFER = 400;
/** Each batch costs commits or round trips: after one of so many events, the next one begins this long after it began. */
const MANY = 20;
const MANY_TOGETHER_MS = 10;
/** After this the events that a killed process held are handed out again. */
const ACK_TIMEOUT_MS = 5_000;

export interface RunFanOutOptions
  extends Pick<GroupFollower, 'subscriptions' | 'log' | 'signal' | 'onState'> {
  readonly fanOut: FanOut;
}

/**
 * Fans out every transaction event from the start of the log until `signal` aborts. An event is acknowledged after
 * its deliveries are stored. While a store is unavailable no further event is taken; an event that can't be handled
 * is parked with its reason. Rejects with any other error of the subscription.
 */
export async function runFanOut({ fanOut, ...following }: RunFanOutOptions): Promise<void> {
  const { log, signal } = following;
  const settings = { prefixes: [TRANSACTION_STREAMS], ackTimeoutMs: ACK_TIMEOUT_MS };
  const component = 'fan-out';
  await followGroup({
    ...following,
    ...{ group: DELIVERIES_GROUP, settings, bufferSize: BUFFER, component },
    async handle(consumer, events, until) {
      const startedAtMs = world.elapsedMs();
      const work = async () => acknowledge(consumer, await fanOutEach(fanOut, events), log);
      await retryWhileUnavailable(work, { log, signal, component, fields: { events: events.length } });
      const leftMs = startedAtMs + MANY_TOGETHER_MS - world.elapsedMs();
      if (events.length >= MANY && leftMs > 0) await pause(leftMs, until);
    },
  });
}

/** An event that can't be handled even alone is parked: it must not delay the others. */
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
  await world.nextTurn(); // the first attempts are written before this thread's next commit
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
      log.warn({ position, stream, reason }, 'deliveries wait: their account can not be read');
    }
  }
}
