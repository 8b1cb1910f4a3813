import { rmSync } from 'node:fs';
import type { Clock } from '../../../base/clock.ts';
import type { StorePlan } from '../../../tables/plan.ts';
import type { Tables } from '../../../tables/tables.ts';
import { asTables } from '../../tables/as-tables.ts';
import { CommitWatch } from '../driver/commit-watch.ts';
import { Database, type OpenOptions } from '../driver/database.ts';
import { schemaOf } from './sql.ts';
import { SqliteTables } from './tables.ts';

export interface OpenFile extends Pick<OpenOptions, 'onPutAside' | 'cacheMiB'> {
  readonly path: string;
  /** What `now` says. */
  readonly clock: Clock;
}

/** Each version runs the same statements, which make what is missing. */
export function migrationsOf(plan: StorePlan): string[] {
  return Array.from({ length: plan.version }, () => schemaOf(plan));
}

/** Opens the tables of an embedded file, and makes a missing one. Several processes and threads may have it open. */
export function openSqliteTables(plan: StorePlan, { path, clock, ...options }: OpenFile): Tables {
  const { durability, pageBytes } = plan;
  const ofPlan = { migrations: migrationsOf(plan), durability, ...(pageBytes && { pageBytes }) };
  const db = new Database(path, { ...options, ...ofPlan });
  const changed = new CommitWatch(db);
  const onClose = (isDestroyed: boolean): void => {
    db.close();
    changed.close();
    if (!isDestroyed) return;
    for (const part of ['', '-wal', '-shm']) rmSync(`${path}${part}`, { force: true });
  };
  return asTables(plan.name, new SqliteTables({ db, clock, changed, onClose }));
}
