import type { Coordination } from '../coordination/coordination.ts';
import { FuelError } from '../errors.ts';

const LEASE = 'store copy';
const VERIFIED_LEASE = 'store copy verified';
/** Until it is given up: ten years. A copy may be interrupted for as long as its operator likes. */
const LEASE_MS = 10 * 365 * 86_400_000;

/**
 * Throws `REFUSED` while a copy into these stores has begun and is not finished. A half copied delivery log knows
 * only half of what receivers have: deliveries made by it would be made again.
 */
export async function assertNoUnfinishedCopy(coordination: Coordination): Promise<void> {
  const lease = await coordination.holder(LEASE);
  if (lease === undefined) return;
  throw new FuelError(
    'REFUSED',
    `a copy into these stores is not finished: run "fuel store copy" to its end`,
  );
}

/** Marks the stores as being copied into, from now on through interruptions. Throws `REFUSED` for another copy. */
export async function beginCopy(coordination: Coordination, storeId: string): Promise<void> {
  if (await coordination.acquire(LEASE, storeId, LEASE_MS)) {
    await coordination.release(VERIFIED_LEASE, storeId);
    return;
  }
  const holder = (await coordination.holder(LEASE))?.holder;
  throw new FuelError('REFUSED', `a copy of event store ${holder} into these stores is not finished`);
}

/** Marks the copy as found equal: once it is on record too, nothing but `endCopy` is left to do. */
export async function markVerified(coordination: Coordination, storeId: string): Promise<void> {
  await coordination.acquire(VERIFIED_LEASE, storeId, LEASE_MS);
}

export async function endCopy(coordination: Coordination, storeId: string): Promise<void> {
  await coordination.release(LEASE, storeId);
  await coordination.release(VERIFIED_LEASE, storeId);
}

/** Ends a copy that was interrupted after it had gone on record; one that is not verified stays unfinished. */
export async function endRecordedCopy(coordination: Coordination, storeId: string): Promise<void> {
  const verified = await coordination.holder(VERIFIED_LEASE);
  if (verified?.holder === storeId) await endCopy(coordination, storeId);
}
