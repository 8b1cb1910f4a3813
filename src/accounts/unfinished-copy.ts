import type { Coordination } from '../base/coordination/coordination.ts';
import { FuelError } from '../base/errors.ts';
import { DAY_MS } from '../domain/values/date-time.ts';

const LEASE = 'store copy';
/** Ten years: a copy may be interrupted for as long as its operator likes. */
const LEASE_MS = 10 * 365 * DAY_MS;

/**
 * Throws `REFUSED` while a copy into these stores has begun and is not finished. A half copied delivery log knows
 * only half of what receivers have: deliveries would be sent twice.
 */
export async function assertNoUnfinishedCopy(coordination: Coordination): Promise<void> {
  if ((await coordination.holder(LEASE)) === undefined) return;
  throw new FuelError(
    'REFUSED',
    'a copy into these stores is not finished: run "fuel store copy" to its end',
  );
}

/** Marks the stores as being copied into, also through interruptions. Throws `REFUSED` for another store's copy. */
export async function beginCopy(coordination: Coordination, storeId: string): Promise<void> {
  if (await coordination.acquire(LEASE, storeId, LEASE_MS)) return;
  const holder = (await coordination.holder(LEASE))?.holder;
  throw new FuelError('REFUSED', `a copy of event store ${holder} into these stores is not finished`);
}

export async function endCopy(coordination: Coordination, storeId: string): Promise<void> {
  await coordination.release(LEASE, storeId);
}
