import type { Log } from '../../base/log.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { recordOperations } from '../../event-store/operations.ts';
import { isDamaged, type Position } from '../../event-store/recorded-event.ts';
import { type VerifyOptions, verify } from './verify.ts';

const DAYS_MS = 2 * DAY_MS;
/** How far the clocks of commands, by which transactions are judged, may be from that of the store, which finds the start. */
const CLOCK_SKEW_MS = 3_600_000;
const STEP = 500;
export const WHERE = 'see "Verifying" in docs/operations/watching.md';

export interface VerifyLastDaysOptions
  extends Pick<
    VerifyOptions,
    'store' | 'view' | 'queue' | 'clock' | 'environment' | 'retentionMs' | 'author' | 'rest' | 'settleMs'
  > {
  readonly accountIds: Iterable<number> | AsyncIterable<number>;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** How many rows and deliveries were repaired, and which events are damaged. */
export interface Repaired {
  readonly view: number;
  readonly deliveries: number;
  readonly damage: readonly Damage[];
}

/** The repairs of one night, and the number of accounts verified. */
export interface Night extends Repaired {
  readonly accounts: number;
}

/**
 * Verifies what was recorded in the last two days, and repairs the view and the deliveries. It never sends what receivers
 * may have got already, so it leaves the deliveries out if their log was lost.
 */
export async function verifyLastDays({
  accountIds,
  log,
  ...options
}: VerifyLastDaysOptions): Promise<Repaired> {
  const { store, clock, signal } = options;
  const sinceMs = clock.now() - DAYS_MS;
  const after = await positionBefore(store, sinceMs - CLOCK_SKEW_MS, signal);
  const { damage, view, deliveries, isLogLost } = await verify({
    ...options,
    sides: ['view', 'deliveries'],
    scope: { sinceMs },
    part: { after, accountIds },
    repair: true,
    lostLog: 'leave out',
  });
  for (const each of damage) log.error({ ...each }, `damaged: ${describeDamage(each)}; ${RESTORE_EVENTS}`);
  if (isLogLost)
    log.error({ isLogLost }, 'the delivery log is not the one that was started: deliveries are not verified');
  const { checked = 0, differences = [], remaining = [], unreadable = [] } = view ?? {};
  const { owed = 0, missing = [], surplus = [], stored = 0 } = deliveries ?? {};
  const repaired = { view: differences.length - remaining.length, deliveries: stored };
  // A surplus can't be repaired, since it may have been sent already.
  const left = {
    view: remaining.length,
    missing: missing.length - stored,
    surplus: surplus.length,
    unreadable: unreadable.length + damage.length,
  };
  const found = { checked, owed, repaired, left };
  const allLeft = Object.values(left).reduce((sum, count) => sum + count, 0);
  const verified = { type: 'AgreementVerified', data: { transactions: checked, left: allLeft } } as const;
  if (!isLogLost) await recordOperations(store, [verified], options);
  if (allLeft > 0) {
    log.error(found, `the last two days differ from the events, and not all could be repaired: ${WHERE}`);
  } else if (repaired.view + repaired.deliveries > 0) {
    log.error(found, `the last two days differed from the events and were repaired: ${WHERE}`);
  } else {
    log.info(found, 'verified the last two days: view and deliveries are what the events call for');
  }
  return { ...repaired, damage: [...damage, ...unreadable] };
}

/** Returns the position of the last readable event that the store recorded before a time; 0 if there is none. */
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
