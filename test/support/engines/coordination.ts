import type { Clock } from '../../../src/base/clock.ts';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { MemoryStores } from './memory-stores.ts';

/** Leases and processes in memory. The same stores have the same ones. */
export function memoryCoordination(clock: Clock, stores = new MemoryStores()): Coordination {
  return openCoordination(stores.open(CONTROL_STORE, clock));
}

/** Leases and processes in an embedded file. */
export function fileCoordination(path: string, clock: Clock): Coordination {
  return openCoordination(openSqliteTables(CONTROL_STORE, { path, steady: clock }));
}
