import type { Clock } from '../../../src/base/clock.ts';
import { type OpenTablesOptions, openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import {
  type OpenTablesOptions as OnPostgres,
  openPostgresTables,
} from '../../../src/engines/postgresql/tables/tables.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import { DELIVERY_STORE } from '../../../src/push/log/tables.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import type { MemoryStores } from '../engines/memory-stores.ts';

/** Opens the delivery log in a file, as a process does. */
export function queueInFile({
  path,
  clock,
}: {
  readonly path: string;
  readonly clock: Clock;
}): DeliveryQueue {
  return openDeliveryLog(openSqliteTables(DELIVERY_STORE, { path }), clock);
}

/** Opens the delivery log on a server. */
export function queueOnMongo({
  clock,
  ...options
}: OpenTablesOptions & { readonly clock: Clock }): DeliveryQueue {
  return openDeliveryLog(openMongoTables(DELIVERY_STORE, options), clock);
}

export function queueOnPostgres({
  clock,
  ...options
}: OnPostgres & { readonly clock: Clock }): DeliveryQueue {
  return openDeliveryLog(openPostgresTables(DELIVERY_STORE, options), clock);
}

/** Opens the delivery log in memory. Everyone who opens these stores gets the same one. */
export function queueInMemory(stores: MemoryStores, clock: Clock): DeliveryQueue {
  return openDeliveryLog(stores.open(DELIVERY_STORE, clock), clock);
}
