import type { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { streakOf } from '../../../src/push/log/streaks.ts';
import {
  DELIVERY_STORE,
  deliveryOf,
  type LaneRow,
  progressOf,
  type StoredRow,
} from '../../../src/push/log/tables.ts';
import type { Attempt, NewDelivery } from '../../../src/push/queue/delivery.ts';
import { healthOf, NO_STREAK } from '../../../src/push/queue/failure-streak.ts';
import type { DeliveryProgress } from '../../../src/push/queue/next-state.ts';
import type { MemoryStores } from '../../support/engines/memory-stores.ts';

/** A delivery as it is stored at a moment. */
export interface Entry {
  readonly owed: NewDelivery;
  readonly progress: DeliveryProgress;
  readonly attempts: readonly Attempt[];
}

const ALL = `SELECT d.*, r.record, a.attempts FROM deliveries d
  JOIN "deliveries aside record" r USING (_row) LEFT JOIN "deliveries aside attempts" a USING (_row)`;

/** Reads the delivery log directly, bypassing every process and without waiting, for the judge. */
export class StoredDeliveries {
  readonly #db: Database;

  constructor(stores: MemoryStores) {
    this.#db = stores.database(DELIVERY_STORE);
  }

  get entries(): ReadonlyMap<string, Entry> {
    return new Map(this.#read(`${ALL} ORDER BY _row`).map((entry) => [entry.owed.id, entry]));
  }

  get due(): readonly Entry[] {
    return this.#read(`${ALL} WHERE d.due_at IS NOT NULL`);
  }

  get(id: string): Entry | undefined {
    return this.#read(`${ALL} WHERE d.id = ?`, id)[0];
  }

  failedInARow(prefix: string): number {
    const [row] = this.#db.prepare('SELECT * FROM lanes WHERE prefix = ?').all(prefix);
    return healthOf(row === undefined ? NO_STREAK : streakOf(row as unknown as LaneRow)).failedInARow;
  }

  #read(sql: string, ...values: string[]): Entry[] {
    return this.#db
      .prepare(sql)
      .all(...values)
      .map((row) => {
        const stored = row as unknown as StoredRow;
        const { attempts, ...owed } = deliveryOf(stored);
        return { owed, progress: progressOf(stored), attempts };
      });
  }
}
