import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../base/clock.ts';
import type { DeliveryQueue } from '../../../push/queue/delivery-queue.ts';
import { CommitWatch } from '../driver/commit-watch.ts';
import { Database } from '../driver/database.ts';
import { sqliteControl } from './control.ts';
import { sqliteLanes } from './lanes.ts';
import { sqliteLaneReads, sqliteReads } from './reads.ts';
import { deliveryMigrations } from './schema.ts';
import { prepareStatements } from './statements.ts';
import { sqliteWork } from './work.ts';

/** A delivery changes a little in many places, and each page is written whole. */
const PAGE_BYTES = 4096;

export interface SqliteDeliveryQueueOptions {
  readonly path: string;
  /** The time of what the port's calls don't date: the log's start, a release, an end without an attempt. */
  readonly clock: Clock;
}

/**
 * Opens the embedded delivery log and creates a missing file. Several processes may share it. A commit survives a power
 * cut. Runs on the calling thread.
 */
export function openSqliteDeliveryQueue({ path, clock }: SqliteDeliveryQueueOptions): DeliveryQueue {
  const migrations = deliveryMigrations({ id: randomUUID(), startedAtMs: clock.now() });
  const db = new Database(path, { migrations, durability: 'full', pageBytes: PAGE_BYTES });
  const commits = new CommitWatch(db);
  const lanes = sqliteLanes(db);
  const parts = { db, clock, commits, lanes, statements: prepareStatements(db) };
  return {
    ...sqliteWork(parts),
    ...sqliteControl(parts),
    ...sqliteReads(db),
    ...sqliteLaneReads(db, lanes),
    async close() {
      db.close();
      commits.close();
    },
  };
}
