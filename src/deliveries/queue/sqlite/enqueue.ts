import type { ClaimedDelivery, ClaimOptions, NewDelivery } from '../delivery-queue.ts';
import { newLease } from '../lease.ts';
import { NO_RECORD, WITHDRAWN } from '../withdrawal.ts';
import type { Statements } from './statements.ts';

/** What became of a batch; deliveries that were there already are in none of it. */
export interface StoredNew {
  readonly lanes: ReadonlySet<string>;
  readonly claimed: readonly ClaimedDelivery[];
  /** Stored as pending and left for `claim`. */
  readonly unclaimed: number;
}

/** Stores the deliveries that are new and claims as many as their lanes take. Belongs in a transaction. */
export function storeNew(
  statements: Statements,
  deliveries: readonly NewDelivery[],
  claimFor: Omit<ClaimOptions, 'limit'> | undefined,
): StoredNew {
  const lease = newLease(claimFor?.holder ?? '');
  const rooms = new Map<string, number>();
  const lanes = new Set<string>();
  const claimed: ClaimedDelivery[] = [];
  let unclaimed = 0;
  for (const delivery of deliveries) {
    const { prefix } = delivery;
    const room = rooms.get(prefix) ?? claimFor?.laneCapacity(prefix) ?? 0;
    rooms.set(prefix, room);
    const withdrawn = statements.isWithdrawn.get(delivery.transactionId) !== undefined;
    const claim =
      claimFor === undefined || withdrawn || room <= 0
        ? undefined
        : { lease, untilMs: claimFor.nowMs + claimFor.leaseMs };
    if (!insert(statements, delivery, withdrawn ? 'withdrawn' : claim)) continue;
    lanes.add(prefix);
    if (claim !== undefined) {
      rooms.set(prefix, room - 1);
      claimed.push({ ...delivery, cycle: 1, attemptNumber: 1, lease });
    } else if (!withdrawn) unclaimed++;
  }
  return { lanes, claimed, unclaimed };
}

/** Says whether it was new. */
function insert(
  statements: Statements,
  delivery: NewDelivery,
  how: 'withdrawn' | { readonly lease: string; readonly untilMs: number } | undefined,
): boolean {
  const { createdAtMs, record } = delivery;
  const [state, reason, endedAtMs, dueAtMs, lease] =
    how === 'withdrawn'
      ? ['withdrawn', WITHDRAWN, createdAtMs, null, null]
      : ['pending', null, null, how?.untilMs ?? createdAtMs, how?.lease ?? null];
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
    lease,
  );
  if (changes === 0) return false;
  const { head, mobileNumber, fees, pump, odometer } = how === 'withdrawn' ? NO_RECORD : record;
  statements.insertRecord.run(lastInsertRowid, head, mobileNumber, fees, pump, odometer);
  return true;
}
