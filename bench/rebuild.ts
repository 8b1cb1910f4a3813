import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../src/clock.ts';
import { openSqliteCoordination } from '../src/coordination/sqlite.ts';
import { openSqliteEventStore } from '../src/event-store/sqlite/event-store.ts';
import { storeIdentity } from '../src/event-store/store-identity.ts';
import { openSqliteView } from '../src/transactions/view/sqlite/view.ts';
import { openBare } from './support/bare-database.ts';
import { importSample } from './support/import-sample.ts';
import { reportRatio, runPairs } from './support/pairs.ts';
import { projectAll } from './support/project-all.ts';
import { sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';

const LINES = 100_000;
const BATCH_EVENTS = 1_000;

type StoredRow = readonly (string | number | null)[];

/** The view built from the log, against a bare loop that reads the events and writes rows of the same size. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const eventsPath = join(folder, 'events.db');
    const store = openSqliteEventStore({ path: eventsPath, clock: systemClock });
    await storeIdentity(store, systemClock);
    await importSample({ store, input: sampleFile({ lines: LINES }), lines: LINES });
    await store.close();
    let run = 0;
    const freshView = (): string => join(folder, `view-${run++}.db`);
    const template = freshView();
    await rebuild(eventsPath, template);
    const rows = storedRows(template);
    const pairs = await runPairs({
      baseline: () => rebuildBare(eventsPath, freshView(), rows),
      ours: () => rebuild(eventsPath, freshView()),
    });
    const target = { ratio: 0.5, is: 'at least' } as const;
    return reportRatio({ what: 'rebuild', unit: 'events/s', pairs, target });
  });
}

async function rebuild(eventsPath: string, viewPath: string): Promise<number> {
  const store = openSqliteEventStore({ path: eventsPath, clock: systemClock });
  const view = openSqliteView({ path: viewPath, clock: systemClock });
  const coordination = openSqliteCoordination({ path: `${viewPath}.control`, clock: systemClock });
  const startedAtMs = performance.now();
  await view.reset(await storeIdentity(store, systemClock), await store.head());
  await projectAll({ store, view, coordination });
  const rate = perSecond(startedAtMs);
  if ((await view.parked()).length > 0) throw new Error('the rebuild set events aside');
  for (const engine of [view, coordination, store]) await engine.close();
  return rate;
}

/** Writes one row for each event read: the next of `rows`, and the first of them again where they run out. */
async function rebuildBare(
  eventsPath: string,
  viewPath: string,
  rows: readonly StoredRow[],
): Promise<number> {
  await openSqliteView({ path: viewPath, clock: systemClock }).close(); // makes the table and its indexes
  const events = openBare(eventsPath, 'FULL');
  const view = openBare(viewPath, 'NORMAL');
  const startedAtMs = performance.now();
  copyBatches(events, view, rows);
  const rate = perSecond(startedAtMs);
  view.close();
  events.close();
  return rate;
}

function copyBatches(events: DatabaseSync, view: DatabaseSync, rows: readonly StoredRow[]): void {
  const select = events.prepare('SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?');
  const insert = view.prepare(
    `INSERT OR REPLACE INTO transactions VALUES (${(rows[0] ?? []).map(() => '?').join(', ')})`,
  );
  let written = 0;
  let position = 0;
  for (;;) {
    const batch = select.all(position, BATCH_EVENTS);
    const last = batch.at(-1);
    if (last === undefined) return;
    view.exec('BEGIN IMMEDIATE');
    for (let n = 0; n < batch.length; n++) insert.run(...(rows[written++ % rows.length] ?? []));
    view.exec('COMMIT');
    position = last.position as number;
  }
}

function storedRows(path: string): StoredRow[] {
  const db = openBare(path, 'NORMAL');
  const select = db.prepare('SELECT * FROM transactions ORDER BY id');
  select.setReturnArrays(true);
  const rows = select.all() as unknown as StoredRow[];
  db.close();
  return rows;
}

function perSecond(startedAtMs: number): number {
  return (LINES * 1_000) / (performance.now() - startedAtMs);
}
