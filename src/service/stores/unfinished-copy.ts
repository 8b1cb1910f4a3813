import type { Coordination } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';

const LEASE = 'store copy';
/** The lease never expires: a copy may be interrupted for as long as the operator likes. */
const LEASE_MS = Number.POSITIVE_INFINITY;

/**
 * Throws `REFUSED` while a copy into these stores is not finished. A half-copied delivery log knows only some of what
 * receivers already have, so deliveries would be sent twice.
 */
export async function assertNoUnfinishedCopy(coordination: Coordination): Promise<void> {
  if ((await coordination.holder(LEASE)) === undefined) return;
  throw new FuelError(
    'REFUSED',
    'a copy into these stores is not finished. Run `fuel store copy` until it is complete',
  );
}

/** Marks the stores as being copied into until `endCopy`. Throws `REFUSED` while another store's copy is unfinished. */
export async function beginCopy(coordination: Coordination, storeId: string): Promise<void> {
  if (await coordination.acquire(LEASE, storeId, LEASE_MS)) return;
  const holder = (await coordination.holder(LEASE))?.holder;
  throw new FuelError(
    'REFUSED',
    `a copy of event store ${holder} into these stores is not finished. Complete it, or copy into empty stores`,
  );
}

export async function endCopy(coordination: Coordination, storeId: string): Promise<void> {
  await coordination.release(LEASE, storeId);
}
