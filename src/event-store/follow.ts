import { type LeaseTerms, whileHolding } from '../base/coordination/while-holding.ts';
import type { Log } from '../base/log.ts';
import { pause } from '../base/pause.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { batchAttributes, traceBatch } from '../base/tracing/spans.ts';
import type { EventStore, SubscribeOptions, SubscriptionBatch } from './event-store.ts';
import type { Position } from './recorded-event.ts';

const STANDBY_CHECK_MS = 500;
const RESTART_PAUSE_MS = 500;

/** Restart from the checkpoint. */
export interface Restart {
  readonly restartBecause: string;
}

export interface FollowOptions extends Pick<SubscribeOptions, 'unparsed' | 'batchSize'> {
  /** The follower's name in log lines, such as `projector`. */
  readonly component: string;
  readonly store: Pick<EventStore, 'subscribe'>;
  /** The prefixes of the names of the streams. */
  readonly streams: readonly string[];
  /** The lease of the active follower. If there are several followers, the others are on standby. */
  readonly lease?: LeaseTerms;
  /**
   * Returns the position up to which everything is handled. Called at the start, after an outage, and after a restart.
   */
  readonly checkpoint: () => Promise<Position>;
  /** Handles a batch, and says whether to continue with the next one, to restart from the checkpoint, or to end. */
  readonly handle: (batch: SubscriptionBatch, until: AbortSignal) => Promise<'next' | 'done' | Restart>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Rejects once a store has been unavailable for this long. By default it waits without limit. */
  readonly maxUnavailableMs?: number;
}

/**
 * Follows streams of the log until `handle` is done or `signal` aborts. While a store is unavailable it waits, then
 * continues from the checkpoint. Rejects with other errors.
 */
export async function follow(follower: FollowOptions): Promise<void> {
  const { component, lease, log, signal, maxUnavailableMs } = follower;
  const retry = { log, signal, component, ...(maxUnavailableMs !== undefined && { maxUnavailableMs }) };
  let isDone = false;
  while (!isDone && !signal.aborted) {
    await retryWhileUnavailable(async (available) => {
      if (lease === undefined) {
        isDone = await readLog(follower, signal, available);
        return;
      }
      const held = await whileHolding(lease, { component, log, signal }, (until) => {
        log.info({ holder: lease.holder }, `${component} is active`);
        return readLog(follower, until, available);
      });
      if (held !== undefined) isDone = held.result;
      else await pause(STANDBY_CHECK_MS, signal);
    }, retry);
  }
}

/** Reads the log from the checkpoint on. Returns true if `handle` is done, false if the signal aborts. */
async function readLog(
  { component, store, streams, unparsed, batchSize, checkpoint, handle, log }: FollowOptions,
  until: AbortSignal,
  available: () => void,
): Promise<boolean> {
  while (!until.aborted) {
    const unread = { prefixes: streams, after: await checkpoint(), unparsed, batchSize, signal: until };
    for await (const batch of store.subscribe(unread)) {
      const span = traceBatch(`${component} handles events`);
      const next = await handle(batch, until);
      span.end(batchAttributes(batch.events.length, batch.checkpoint));
      available();
      if (next === 'done') return true;
      if (next === 'next') continue;
      log.warn({ reason: next.restartBecause }, `${component} restarts from its checkpoint`);
      // On an embedded store all of this is synchronous: without a pause, nothing else in the thread would get a turn.
      await pause(RESTART_PAUSE_MS, until);
      break;
    }
  }
  return false;
}
