import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Environment } from '../../domain/account-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import { isDamaged, type Position } from '../../event-store/recorded-event.ts';
import { damagedEvents } from '../../pull/view/parked-events.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { readStartedLog } from '../../push/delivery-log.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { readLog } from './read-log.ts';
import { repairDeliveries } from './repair-deliveries.ts';
import { repairView } from './repair-view.ts';
import { DeliveryJudge, type DeliveryJudgeOptions } from './verify-deliveries.ts';
import { ViewJudge } from './verify-view.ts';

const DAYS_MS = 2 * DAY_MS;
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

/** How many rows and deliveries were repaired, and what of the event store is damaged. */
export interface Repaired {
  readonly view: number;
  readonly deliveries: number;
  readonly damage: readonly Damage[];
}

/**
 * Judges what was recorded in the last two days, and repairs the view and the deliveries where they differ. What
 * receivers may have got already, because the log of it is lost, is never sent by this.
 */
export async function verifyLastDays(options: VerifyLastDaysOptions): Promise<Repaired> {
  const { store, view, clock, log, signal, settleMs, accountIds } = options;
  const sinceMs = clock.now() - DAYS_MS;
  const damage = await damagedEvents(store, () => view, signal);
  for (const each of damage) log.error({ ...each }, `damaged: ${describeDamage(each)}; ${RESTORE_EVENTS}`);
  const after = await positionBefore(store, sinceMs - CLOCK_SKEW_MS, signal);
  const settle = settleMs === undefined ? {} : { settleMs };
  const rows = new ViewJudge({ store, view, sinceMs, damage, pagesOf: accountIds, ...settle });
  const deliveries = await deliveryJudge(options, { sinceMs, damage, ...settle });
  const judges = deliveries.judge === undefined ? [rows] : [rows, deliveries.judge];
  await readLog(judges, { store, after, signal });
  const { checked, differences, unreadable } = await rows.finish();
  const remaining = await repairView(differences, options);
  const agreement = await deliveries.judge?.finish();
  const missing = agreement?.missing ?? [];
  const { stored } =
    missing.length === 0
      ? { stored: 0 }
      : await repairDeliveries(missing, { newLog: false }, { ...options, queue: options.queue() });
  const repaired = { view: differences.length - remaining.length, deliveries: stored };
  // What was sent too often is in the world: no surplus is ever repaired.
  const left = {
    view: remaining.length,
    missing: missing.length - stored,
    surplus: agreement?.surplus.length ?? 0,
    unreadable: unreadable.length + damage.length,
  };
  const found = { checked, owed: agreement?.owed ?? 0, repaired, left };
  const where = 'see "fuel verify" in docs/operations/watching.md';
  const allLeft = Object.values(left).reduce((sum, count) => sum + count, 0);
  const verified = { type: 'AgreementVerified', data: { transactions: checked, left: allLeft } } as const;
  if (!deliveries.isLost) await recordOperations(store, [verified], options);
  if (allLeft > 0) {
    log.error(found, `the last two days differ from the events, and not all could be repaired: ${where}`);
  } else if (repaired.view + repaired.deliveries > 0) {
    log.error(found, `the last two days differed from the events and were repaired: ${where}`);
  } else {
    log.info(found, 'verified the last two days: view and deliveries are what the events call for');
  }
  return { ...repaired, damage: [...damage, ...unreadable] };
}

/** None where no log was begun, or the one that was begun is lost. */
async function deliveryJudge(
  options: VerifyLastDaysOptions,
  scope: Pick<DeliveryJudgeOptions, 'sinceMs' | 'settleMs' | 'damage'>,
): Promise<{ readonly judge?: DeliveryJudge; readonly isLost: boolean }> {
  const started = await readStartedLog(options.store);
  if (started === undefined) return { isLost: false };
  const queue = options.queue();
  const { id, startedAtMs } = await queue.logId();
  if (id === started.id) {
    const judge = new DeliveryJudge({ ...options, ...scope, queue, logStartedAtMs: startedAtMs });
    return { judge, isLost: false };
  }
  options.log.error(
    { log_id: id, started: started.id },
    'the delivery log is another one: it is not verified',
  );
  return { isLost: true };
}

/** The position of a transaction's event before all that the store recorded since a time; 0 where there is none. */
async function positionBefore(store: EventStore, sinceMs: number, signal: AbortSignal): Promise<Position> {
  let before: Position | undefined;
  for (;;) {
    signal.throwIfAborted();
    const step = await store.readBackwards({ prefixes: [TRANSACTION_STREAMS], before, limit: STEP });
    const earlier = step.events.find((event) => event.recordedAtMs < sinceMs && !isDamaged(event));
    if (earlier !== undefined) return earlier.position;
    if (step.atStart) return 0;
    before = step.position;
  }
}
