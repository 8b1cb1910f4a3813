import { TRANSACTION_STREAMS } from '../domain/transaction-events.ts';
import { FuelError } from '../errors.ts';
import type { GroupConsumer, GroupEvent, PersistentSubscriptions } from '../event-store/event-store.ts';
import type { Log } from '../log.ts';
import { levelOf, untilAvailable } from '../patience.ts';
import { pause } from '../pause.ts';
import type { FanOut, Settlement } from './fan-out.ts';
import { inBatches } from './in-batches.ts';

export const DELIVERIES_GROUP = 'deliveries';

const BATCH = 100;
const BUFFER = 400;
/** What a killed process held is handed out again after this. */
const ACK_TIMEOUT_MS = 5_000;
/** As good as never: only what can't be read is parked, and that at once. A store that is away costs no event. */
const MOST_RETRIES = 2 ** 31 - 1;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export interface FanOutRun {
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
 * acknowledged after what it calls for is stored. While a store is away no further event is taken. Rejects with
 * what the subscription rejects with.
 */
export async function runFanOut(run: FanOutRun): Promise<void> {
  const { subscriptions, signal, log, onConnected } = run;
  await untilAvailable(() => prepareGroup(subscriptions), { log, signal, who: 'fan-out' });
  if (signal.aborted) return;
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: BUFFER, signal: until });
  onConnected?.();
  for await (const events of inBatches(consumer, BATCH)) {
    const beganAtMs = performance.now();
    try {
      const settlements = await handle(run, events);
      if (settlements !== undefined) await settle(consumer, settlements, run.log);
    } catch (error) {
      failed.abort(); // or else leaving the loop would wait for the next event
      throw error;
    }
    const leftMs = beganAtMs + (run.gatherMs ?? 0) - performance.now();
    if (leftMs > 0) await pause(leftMs, until);
  }
}

/** What was parked is tried once more: this version may read what another could not. */
async function prepareGroup(subscriptions: PersistentSubscriptions): Promise<void> {
  await subscriptions.ensureGroup(DELIVERIES_GROUP, {
    prefixes: [TRANSACTION_STREAMS],
    ackTimeoutMs: ACK_TIMEOUT_MS,
    maxRetries: MOST_RETRIES,
  });
  await subscriptions.replayParked(DELIVERIES_GROUP);
}

/** Tries until the stores take it; `undefined` where the run was ended before they did. */
async function handle(
  { fanOut, log, signal }: FanOutRun,
  events: readonly GroupEvent[],
): Promise<Settlement[] | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await fanOut.handle(events);
    } catch (error) {
      if (error instanceof FuelError && error.code === 'STORE_CLOSED') throw error;
      log[levelOf(error)](
        { err: error, events: events.length, pause_ms: pauseMs },
        'fan-out waits for a store',
      );
    }
    await pause(pauseMs, signal);
  }
  return undefined;
}

async function settle(consumer: GroupConsumer, settlements: readonly Settlement[], log: Log): Promise<void> {
  await consumer.ack(settlements.filter(({ kind }) => kind === 'ack').map(({ event }) => event));
  for (const settlement of settlements) {
    if (settlement.kind === 'ack') continue;
    const { kind, event, reason } = settlement;
    const { position, stream, type } = event.event;
    if (kind === 'park') {
      await consumer.park(event, reason);
      log.error(
        { position, stream, type, reason },
        'event parked: it calls for no delivery until it is retried',
      );
    } else {
      await consumer.retry(event, { reason, delayMs: settlement.delayMs });
      log.warn({ position, stream, reason }, 'deliveries wait: their account can not be read');
    }
  }
}
