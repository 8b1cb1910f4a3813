import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { type Anchor, type MadeFrom, mismatchOf, storeIdentity } from '../../event-store/store-identity.ts';
import type { Key, TablePlan } from '../../tables/plan.ts';
import { change, drop, put, type Query, type Tables } from '../../tables/tables.ts';
import { readProgress } from './read-rows.ts';
import { ACCOUNTS, KEYS, MEMBERS, PROGRESS, PROGRESS_NAME, type ProgressRow } from './tables.ts';
import { ACCOUNT_HISTORY } from './writes-of.ts';

const ROWS_A_COMMIT = 500;
const LATER_READ = 100;
/** The progress of rows that are being removed. They belong to no store, and nobody is served by them. */
const EMPTYING: ProgressRow = {
  name: PROGRESS_NAME,
  store_id: '',
  position: 0,
  reached: 0,
  anchor: null,
  complete_at: null,
};

export function madeFrom({ store_id, position, anchor }: ProgressRow): MadeFrom {
  const storeId = store_id;
  return anchor === null
    ? { storeId, position }
    : { storeId, position, anchor: JSON.parse(anchor) as Anchor };
}

/** True if these rows are of this log, and no event of an account is after them. */
export async function isAtEnd(
  progress: ProgressRow,
  { store, clock }: { readonly store: EventStore; readonly clock: Clock },
): Promise<boolean> {
  const place = { store, storeId: await storeIdentity(store, clock) };
  if ((await mismatchOf(madeFrom(progress), place)) !== undefined) return false;
  for (let before: Position | undefined; ; ) {
    const read = await store.readBackwards({ prefixes: ACCOUNT_HISTORY, before, limit: LATER_READ });
    if (read.events.some(({ position }) => position > progress.position)) return false;
    if (read.atStart || read.position <= progress.position) return true;
    before = read.position;
  }
}

export interface RowsBeginning {
  readonly store: EventStore;
  readonly tables: Tables;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Returns the progress to continue from. Rows of another store, or of one that was restored to an earlier state, are removed
 * first: they are rebuilt from the first event on.
 */
export async function beginRows({ store, tables, clock, log }: RowsBeginning): Promise<ProgressRow> {
  const storeId = await storeIdentity(store, clock);
  for (;;) {
    const found = await readProgress(tables);
    const mismatch = found && (await mismatchOf(madeFrom(found), { store, storeId }));
    if (found !== undefined && mismatch === undefined) {
      if (found.reached === found.position) return found;
      // If the log was restored, it may have other events after the checkpoint.
      const begun = { ...found, reached: found.position };
      const [isBegun] = await tables.write([put(PROGRESS, begun, { as: found })]);
      if (isBegun === true) return begun;
      continue;
    }
    if (mismatch !== undefined && found?.store_id !== EMPTYING.store_id)
      log.warn(
        { reason: mismatch },
        'the rows of accounts cannot be used: making them again from every account event',
      );
    const guard = found === undefined ? 'missing' : { as: found };
    const [isEmptying] = await tables.write([put(PROGRESS, EMPTYING, guard)]);
    if (isEmptying !== true) continue;
    for (const table of [ACCOUNTS, KEYS, MEMBERS]) await removeAll(tables, table);
    const begun: ProgressRow = { ...EMPTYING, store_id: storeId };
    await tables.write([put(PROGRESS, begun, { as: EMPTYING })]);
  }
}

/** Removes all rows while the rows are being emptied. A follower that is late removes none of those that were made since. */
async function removeAll(tables: Tables, table: TablePlan): Promise<void> {
  const { key } = table;
  const query = { index: 'key', columns: [key], limit: ROWS_A_COMMIT } as unknown as Query<TablePlan, never>;
  for (;;) {
    const found = (await tables.find(table, query)) as readonly Readonly<Record<string, Key>>[];
    const drops = found.map((row) => drop(table, row[key] as Key));
    const isEmptying = change(PROGRESS, PROGRESS_NAME, { store_id: EMPTYING.store_id }, { as: EMPTYING });
    const [isDone] = await tables.write([isEmptying, ...drops], { allOrNone: true });
    if (drops.length === 0 || isDone !== true) return;
  }
}
