import type { Clock } from '../../../src/base/clock.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { migrationsOf, SqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { asTables } from '../../../src/engines/tables/as-tables.ts';
import type { StorePlan } from '../../../src/tables/plan.ts';
import type { ChangeListener, ChangeSignal, Tables } from '../../../src/tables/tables.ts';

/** Stores in memory for tests. All openings of one name share their tables, which last as long as this object. */
export class MemoryStores {
  readonly #stores = new Map<string, { readonly db: Database; readonly handles: Set<MemoryChanges> }>();

  open(plan: StorePlan, clock: Clock): Tables {
    const { db, handles } = this.#store(plan);
    const changed = new MemoryChanges(handles);
    const onClose = (destroyed: boolean): void => {
      changed.close();
      if (destroyed) this.#stores.delete(plan.name);
    };
    const tables = asTables(plan.name, new SqliteTables({ db, steady: clock, changed, onClose }));
    const write: Tables['write'] = async (...given) => {
      const done = await tables.write(...given);
      changed.notifyOthers();
      return done;
    };
    return { ...tables, write };
  }

  /** Returns the current rows of a table; none if nobody has opened the store. */
  rowsIn(store: string, table: string): Readonly<Record<string, unknown>>[] {
    return this.#stores.get(store)?.db.prepare(`SELECT * FROM "${table}"`).all() ?? [];
  }

  /** Returns the database of a store, for tests that look at its rows directly. */
  database(plan: StorePlan): Database {
    return this.#store(plan).db;
  }

  #store(plan: StorePlan) {
    const store = this.#stores.get(plan.name) ?? {
      db: new Database(':memory:', { migrations: migrationsOf(plan), durability: plan.durability }),
      handles: new Set<MemoryChanges>(),
    };
    this.#stores.set(plan.name, store);
    return store;
  }
}

/** The listeners of one of several handles. The commit of another handle notifies them, as between users of a file. */
export class MemoryChanges implements ChangeSignal {
  readonly #handles: Set<MemoryChanges>;
  readonly #listeners = new Set<ChangeListener>();
  #isClosed = false;

  constructor(handles: Set<MemoryChanges>) {
    this.#handles = handles;
    handles.add(this);
  }

  add(listener: ChangeListener): void {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', 'the store is closed');
    this.#listeners.add(listener);
  }

  remove(listener: ChangeListener): void {
    this.#listeners.delete(listener);
  }

  notify(): void {
    for (const handle of this.#handles) handle.#notifyOwn();
  }

  notifyOthers(): void {
    for (const handle of this.#handles) if (handle !== this) handle.#notifyOwn();
  }

  close(): void {
    this.#isClosed = true;
    this.#handles.delete(this);
    this.#notifyOwn();
  }

  #notifyOwn(): void {
    for (const listener of this.#listeners) listener.notify();
  }
}
