import {
  type ClaimedDelivery,
  type ClaimOptions,
  type NewDelivery,
  newLeaseToken,
} from '../../../push/queue/delivery-queue.ts';
import { NO_RECORD, WITHDRAWN } from '../../../push/queue/next-state.ts';
import type { Statements } from './statements.ts';

/** What became of a batch; deliveries that were stored before are in none of it. */
export interface StoredNew {
  readonly lanes: ReadonlySet<string>;
  readonly claimed: readonly ClaimedDelivery[];
  /** Stored as pending and left for `claim`. */
  readonly unclaimed: number;
}

/** Stores the new deliveries and claims them as far as their lanes have capacity. Must run in a transaction. */
export function storeNew(
  statements: Statements,
  deliveries: readonly NewDelivery[],
  claimFor: Omit<ClaimOptions, 'limit'> | undefined,
): StoredNew {
  const leaseToken = newLeaseToken(claimFor?.holder ?? '');
  const freeSlots = new Map<string, number>();
  const lanes = new Set<string>();
  const claimed: ClaimedDelivery[] = [];
  let unclaimed = 0;
  for (const delivery of deliveries) {
    const { prefix } = delivery;
    const free = freeSlots.get(prefix) ?? claimFor?.laneCapacity(prefix) ?? 0;
    freeSlots.set(prefix, free);
    const withdrawn = statements.isWithdrawn.get(delivery.transactionId) !== undefined;
    const claim =
      claimFor === undefined || withdrawn || free <= 0
        ? undefined
        : { leaseToken, untilMs: claimFor.nowMs + claimFor.leaseMs };
    if (!insert(statements, delivery, withdrawn ? 'withdrawn' : claim)) continue;
    lanes.add(prefix);
    if (claim !== undefined) {
      freeSlots.set(prefix, free - 1);
      claimed.push({ ...delivery, cycle: 1, attemptNumber: 1, leaseToken });
    } else if (!withdrawn) unclaimed++;
  }
  return { lanes, claimed, unclaimed };
}

/** Returns whether it was new. */
function insert(
  statements: Statements,
  delivery: NewDelivery,
  how: 'withdrawn' | { readonly leaseToken: string; readonly untilMs: number } | undefined,
): boolean {
  const { createdAtMs, record } = delivery;
  const [state, reason, endedAtMs, dueAtMs, leaseToken] =
    how === 'withdrawn'
      ? ['withdrawn', WITHDRAWN, createdAtMs, null, null]
      : ['pending', null, null, how?.untilMs ?? createdAtMs, how?.leaseToken ?? null];
  const { changes, lastInsertRowid } = statements.insert.run(
    delivery.id,
    delivery.prefix,
    delivery.accountId,
    delivery.transactionId,
    delivery.type,
    createdAtMs,
    delivery.position,
    delivery.recordedAtMs,
    state,
    reason,
    endedAtMs,
    dueAtMs,
    leaseToken,
  );
  if (changes === 0) return false;
  const { head, mobileNumber, fees, pump, odometer } = how === 'withdrawn' ? NO_RECORD : record;
  const values = [lastInsertRowid, head, mobileNumber, fees, pump, odometer];
  if (statements.insertRecord.run(...values).changes === 1) return true;
  // Someone removed a delivery by hand and left these behind; SQLite gives its number again.
  statements.purgeRecord.run(lastInsertRowid);
  statements.purgeAttempts.run(lastInsertRowid);
  statements.insertRecord.run(...values);
  return true;
}
