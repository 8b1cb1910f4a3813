import { hash } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import { verifyLog } from '../src/seals/verify-log.ts';
import { key, seal } from '../test/support/seals/sealing.ts';
import { openBare } from './support/bare-database.ts';
import { importSample } from './support/import-sample.ts';
import { print, reportRatio, runPairs } from './support/pairs.ts';
import { sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';

const EVENTS = Number(process.env.BENCH_ROWS ?? 1_000_000);
const PAIRS = 5;

/** The proof of a log, as `fuel audit verify` makes it, against a bare loop that reads and hashes the same events. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const path = join(folder, 'events.db');
    const store = openSqliteEventStore({ path, clock: systemClock });
    await importSample({ store, input: sampleFile({ lines: EVENTS }), lines: EVENTS });
    await seal(store, { leaves: 10_000 });
    print(`  ${EVENTS.toLocaleString('en')} events, a seal for each 10,000`);
    const pairs = await runPairs({
      pairs: PAIRS,
      baseline: async () => timed(async () => readBare(path)),
      ours: async () =>
        timed(async () => {
          const { leaves, fault } = await verifyLog({ store, key });
          if (fault !== undefined || leaves < EVENTS) throw new Error(JSON.stringify(fault));
        }),
    });
    await store.close();
    return reportRatio({ what: 'proof', unit: 's', pairs, target: { ratio: 1.5, is: 'at most' } });
  });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return (performance.now() - startedAtMs) / 1_000;
}

/** Each event's columns as one text, hashed. */
function readBare(path: string): void {
  const database = openBare(path, 'FULL');
  const rows = database.prepare(
    'SELECT stream, revision, id, type, data, metadata FROM events ORDER BY position',
  );
  rows.setReturnArrays(true);
  for (const row of rows.iterate() as Iterable<unknown>)
    hash('sha256', (row as readonly unknown[]).join('\n'), 'base64');
  database.close();
}
