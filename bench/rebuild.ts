import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { CONTROL_STORE, openCoordination } from '../src/base/coordination/stored-coordination.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import { openSqliteTables } from '../src/engines/sqlite/tables/tables.ts';
import { storeIdentity } from '../src/event-store/store-identity.ts';
import { viewInFolder } from '../test/support/transactions/open-view.ts';
import { rebuildBare, storedView } from './support/bare-rebuild.ts';
import { importSample } from './support/import-sample.ts';
import { reportRatio, runPairs } from './support/pairs.ts';
import { projectAll } from './support/project-all.ts';
import { sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';

const LINES = 100_000;

/**
 * Measures building the view from the log, against a bare loop that reads the events and writes rows of the same size.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const eventsPath = join(folder, 'events.db');
    const store = openSqliteEventStore({ path: eventsPath, clock: systemClock });
    await storeIdentity(store, systemClock);
    await importSample({ store, input: sampleFile({ lines: LINES }), lines: LINES });
    await store.close();
    let run = 0;
    const freshView = (): string => {
      const view = join(folder, `view-${run++}`);
      mkdirSync(view);
      return view;
    };
    const template = freshView();
    await rebuild(eventsPath, template);
    const bare = storedView(template);
    const pairs = await runPairs({
      baseline: async () =>
        (LINES * 1_000) / (await rebuildBare(eventsPath, join(freshView(), 'bare.db'), bare)),
      ours: () => rebuild(eventsPath, freshView()),
    });
    const target = { ratio: 0.72, is: 'at least' } as const;
    return reportRatio({ what: 'rebuild', unit: 'events/s', pairs, target });
  });
}

async function rebuild(eventsPath: string, viewFolder: string): Promise<number> {
  const store = openSqliteEventStore({ path: eventsPath, clock: systemClock });
  const view = viewInFolder(viewFolder, systemClock);
  const coordination = openCoordination(
    openSqliteTables(CONTROL_STORE, { path: join(viewFolder, 'control.db') }),
  );
  const startedAtMs = performance.now();
  await view.reset(await storeIdentity(store, systemClock), await store.head());
  await projectAll({ store, view, coordination });
  const rate = perSecond(startedAtMs);
  if ((await view.parked()).length > 0) throw new Error('the rebuild set events aside');
  for (const engine of [view, coordination, store]) await engine.close();
  return rate;
}

function perSecond(startedAtMs: number): number {
  return (LINES * 1_000) / (performance.now() - startedAtMs);
}
