import { type LeaseTerms, whileHolding } from '../base/coordination/while-holding.ts';
import type { Log } from '../base/log.ts';
import { pause } from '../base/pause.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import type { EventStore, SubscribeOptions, SubscriptionBatch } from './event-store.ts';
import type { Position } from './recorded-event.ts';

const STANDBY_CHECK_MS = 500;

export interface Follower extends Pick<SubscribeOptions, 'unparsed' | 'batchSize'> {
  /** As the log names it: `projector`. */
  readonly component: string;
  readonly store: Pick<EventStore, 'subscribe'>;
  /** What the names of the streams begin with. */
  readonly streams: readonly string[];
  /** Of several followers its holder is active, and the others are on standby. */
  readonly lease?: LeaseTerms;
  /** Everything up to here is handled. Asked at the start, after an outage, and after `restart`. */
  readonly checkpoint: () => Promise<Position>;
  /** Resolves when the batch is handled: then the next one comes, or the checkpoint is asked again, or it is all done. */
  readonly handle: (batch: SubscriptionBatch, until: AbortSignal) => Promise<'next' | 'restart' | 'done'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Rejects after a store was unavailable for so long; waits without limit unless given. */
  readonly maxUnavailableMs?: number;
}

/**
 * Follows streams of the log until `handle` is done or `signal` aborts. While a store is unavailable it waits, then
 * continues from the checkpoint. Rejects with other errors.
 */
export async function follow(follower: Follower): Promise<void> {
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

/** Says whether it is done. */
async function readLog(
  { store, streams, unparsed, batchSize, checkpoint, handle }: Follower,
  until: AbortSignal,
  available: () => void,
): Promise<boolean> {
  while (!until.aborted) {
    const log = { prefixes: streams, after: await checkpoint(), unparsed, batchSize, signal: until };
    for await (const batch of store.subscribe(log)) {
      const next = await handle(batch, until);
      available();
      if (next === 'done') return true;
      if (next === 'restart') break;
    }
  }
  return false;
}
