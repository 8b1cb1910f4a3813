import { readProgress } from '../../../src/accounts/rows/read-rows.ts';
import { ACCOUNTS_STORE, PROGRESS } from '../../../src/accounts/rows/tables.ts';
import { ACCOUNT_HISTORY, changedBy, writesOf } from '../../../src/accounts/rows/writes-of.ts';
import type { Clock } from '../../../src/base/clock.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { readToEnd } from '../../../src/event-store/reads.ts';
import { readSkipped } from '../../../src/event-store/skipped-events.ts';
import { put, type Tables } from '../../../src/tables/tables.ts';
import { MemoryLog, openMemoryEventStore } from '../engines/memory-log.ts';
import { MemoryStores } from '../engines/memory-stores.ts';

/** Rows of accounts that a test brings up to the end of the log when it wants to, as the follower does all the time. */
export class KeptRows {
  readonly tables: Tables;
  readonly #writing: Tables;
  readonly #store: EventStore;

  constructor(store: EventStore, clock: Clock) {
    this.#store = store;
    const stores = new MemoryStores();
    this.tables = stores.open(ACCOUNTS_STORE, clock);
    this.#writing = stores.open(ACCOUNTS_STORE, clock);
  }

  async follow(): Promise<void> {
    const after = (await readProgress(this.tables))?.position ?? 0;
    for await (const { events, position } of readToEnd(this.#store, { prefixes: ACCOUNT_HISTORY, after })) {
      const place = { store: this.#store, tables: this.tables, skipped: await readSkipped(this.#store) };
      const { writes } = await writesOf(changedBy(events), place);
      const upTo = { position, reached: position, anchor: null };
      const progress = { name: 'accounts', store_id: 'test', ...upTo, complete_at: 0 };
      await this.#writing.write([...writes, put(PROGRESS, progress)]);
    }
  }
}

/** Returns the rows that these events of one account make. */
export async function rowsOfEvents(
  events: readonly (AccountEvent | { readonly type: string; readonly data: unknown })[],
  clock: Clock,
): Promise<Tables> {
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const appended = events.map((event) =>
    newEvent(event as AccountEvent, { actor: 'test', command: 'test' }, clock.now()),
  );
  await store.append([{ stream: 'account-7', expected: 'any', events: appended }]);
  const rows = new KeptRows(store, clock);
  await rows.follow();
  await store.close();
  return rows.tables;
}
