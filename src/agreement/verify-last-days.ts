import type { Clock } from '../clock.ts';
import { readStartedLog } from '../deliveries/delivery-log.ts';
import type { DeliveryQueue } from '../deliveries/queue/delivery-queue.ts';
import type { Environment } from '../domain/account-events.ts';
import { TRANSACTION_STREAMS } from '../domain/transaction-events.ts';
import type { EventStore, Position } from '../event-store/event-store.ts';
import type { Author } from '../event-store/new-event.ts';
import type { Log } from '../log.ts';
import type { TransactionsView } from '../transactions/view/transactions-view.ts';
import { readLog } from './read-log.ts';
import { repairDeliveries } from './repair-deliveries.ts';
import { repairView } from './repair-view.ts';
import { DeliveryJudge } from './verify-deliveries.ts';
import { ViewJudge } from './verify-view.ts';

const DAYS_MS = 2 * 86_400_000;
/** The command's clock, which a transaction is judged by, may be this far from the store's, which finds its place. */
const CLOCK_SKEW_MS = 3_600_000;
const STEP = 500;

export interface VerifyLastDaysOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  /** Opened only where a delivery log was begun. */
  readonly queue: () => DeliveryQueue;
  readonly accountIds: Iterable<number>;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  readonly author: Author;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly settleMs?: number;
}

/** How many rows and deliveries were repaired. */
export interface Repaired {
  readonly view: number;
  readonly deliveries: number;
}

/**
 * Judges what was recorded in the last two days, and repairs the view and the deliveries where they differ. What
 * receivers may have got already, because the log of it is lost, is never sent by this.
 */
export async function verifyLastDays(options: VerifyLastDaysOptions): Promise<Repaired> {
  const { store, view, clock, log, signal, settleMs, accountIds } = options;
  const sinceMs = clock.now() - DAYS_MS;
  const after = await positionBefore(store, sinceMs - CLOCK_SKEW_MS, signal);
  const settle = settleMs === undefined ? {} : { settleMs };
  const rows = new ViewJudge({ store, view, sinceMs, pagesOf: accountIds, ...settle });
  const deliveries = await deliveryJudge(options, { sinceMs, ...settle });
  const judges = [rows, deliveries].filter((judge) => judge !== undefined);
  await readLog(judges, { store, after, signal });
  const { checked, differences } = await rows.finish();
  const remaining = await repairView(differences, options);
  const agreement = await deliveries?.finish();
  const missing = agreement?.missing ?? [];
  const stored =
    missing.length === 0
      ? 0
      : await repairDeliveries(missing, { newLog: false }, { ...options, queue: options.queue() });
  const surplus = agreement?.surplus.length ?? 0;
  const found = {
    checked,
    owed: agreement?.owed ?? 0,
    differences: differences.length,
    missing: missing.length,
  };
  const repaired = { view: differences.length - remaining.length, deliveries: stored };
  if (differences.length + missing.length + surplus === 0) {
    log.info(found, 'verified the last two days: view and deliveries are what the events call for');
  } else {
    log.error(
      { ...found, surplus, repaired },
      'the last two days differed from the events and were repaired: see "fuel verify" in docs/operations/watching.md',
    );
  }
  return repaired;
}

/** `undefined` where no log was begun, or the one that was begun is lost. */
async function deliveryJudge(
  options: VerifyLastDaysOptions,
  scope: { readonly sinceMs: number; readonly settleMs?: number },
): Promise<DeliveryJudge | undefined> {
  const started = await readStartedLog(options.store);
  if (started === undefined) return undefined;
  const queue = options.queue();
  const { id, startedAtMs } = await queue.logId();
  if (id === started.id)
    return new DeliveryJudge({ ...options, ...scope, queue, logStartedAtMs: startedAtMs });
  options.log.error(
    { log_id: id, started: started.id },
    'the delivery log is another one: it is not verified',
  );
  return undefined;
}

/** The position of a transaction's event before all that the store recorded since a time; 0 where there is none. */
async function positionBefore(store: EventStore, sinceMs: number, signal: AbortSignal): Promise<Position> {
  let before: Position | undefined;
  for (;;) {
    signal.throwIfAborted();
    const step = await store.readBackwards({ prefixes: [TRANSACTION_STREAMS], before, limit: STEP });
    const earlier = step.events.find(({ recordedAtMs }) => recordedAtMs < sinceMs);
    if (earlier !== undefined) return earlier.position;
    if (step.atStart) return 0;
    before = step.position;
  }
}
