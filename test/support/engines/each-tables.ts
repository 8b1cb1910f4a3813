import { describe, onTestFinished } from 'vitest';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import type { StorePlan } from '../../../src/tables/plan.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { FakeClock } from '../fake-clock.ts';
import { MemoryStores } from './memory-stores.ts';
import { describeWithMongodb, freshDatabase, mongodb } from './mongodb.ts';
import { describeWithPostgres, postgresql } from './postgresql/postgresql.ts';

export interface EmptyStores {
  /** Opens the same store once more with each call, as another process does. */
  open(plan: StorePlan): Tables;
}

/** Runs a suite of code above the tables on every engine of tables. */
export function onEachTables(suite: (empty: () => EmptyStores) => void): void {
  describe('on SQLite', () => {
    suite(() => {
      const stores = new MemoryStores();
      return { open: (plan) => stores.open(plan, new FakeClock()) };
    });
  });
  describeWithMongodb('on MongoDB', () => {
    suite(() => {
      const database = freshDatabase();
      return { open: (plan) => openMongoTables(plan, { connection: mongodb(database) }) };
    });
  });
  describeWithPostgres('on PostgreSQL', () => {
    suite(() => {
      const connection = postgresql();
      onTestFinished(() => connection.close()); // a server takes some hundred
      return { open: (plan) => openPostgresTables(plan, { connection }) };
    });
  });
}
