import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { openSqliteCoordination } from '../src/engines/sqlite/coordination.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import { openSqliteView } from '../src/engines/sqlite/view/view.ts';
import { storeIdentity } from '../src/event-store/store-identity.ts';
import { rebuildBare, type StoredRow, storedRows } from './support/bare-rebuild.ts';
import { importSample } from './support/import-sample.ts';
import { print, reportRatio, runPairs } from './support/pairs.ts';
import { projectAll } from './support/project-all.ts';
import { sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';

const LINES = Number(process.env.BENCH_ROWS ?? 400_000);
const PAIRS = 5;
const FUEL = join(import.meta.dirname, '../bin/fuel');

/**
 * `fuel projection rebuild transactions`, a process from its start to the switch, the comparison of the two views included,
 * against the bare loop of `rebuild`.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const { eventsPath, rows } = await build(folder);
    print(`  ${LINES.toLocaleString('en')} events`);
    let run = 0;
    const pairs = await runPairs({
      pairs: PAIRS,
      baseline: async () => perSecond(await rebuildBare(eventsPath, join(folder, `bare-${run++}.db`), rows)),
      ours: async () => perSecond(await rebuild(folder)),
    });
    const target = { ratio: 0.75, is: 'at least' } as const;
    return reportRatio({ what: 'rebuild-beside', unit: 'events/s', pairs, target });
  });
}

async function build(folder: string): Promise<{ eventsPath: string; rows: readonly StoredRow[] }> {
  const eventsPath = join(folder, 'events.db');
  const viewPath = join(folder, 'transactions.db');
  const store = openSqliteEventStore({ path: eventsPath, clock: systemClock });
  const view = openSqliteView({ path: viewPath, clock: systemClock });
  const coordination = openSqliteCoordination({ path: join(folder, 'control.db'), clock: systemClock });
  await storeIdentity(store, systemClock);
  await importSample({ store, input: sampleFile({ lines: LINES }), lines: LINES });
  await projectAll({ store, view, coordination });
  const rows = storedRows(viewPath);
  for (const engine of [view, coordination, store]) await engine.close();
  return { eventsPath, rows };
}

/** Milliseconds. */
async function rebuild(folder: string): Promise<number> {
  const startedAtMs = performance.now();
  const args = ['projection', 'rebuild', 'transactions', '--json'];
  const env = { ...process.env, FUEL_DATA_DIR: folder };
  const child = spawn(FUEL, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the rebuild ended with ${code}`);
  return performance.now() - startedAtMs;
}

function perSecond(tookMs: number): number {
  return (LINES * 1_000) / tookMs;
}
