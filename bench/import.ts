import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../src/base/clock.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import { appendBare, storedEvents } from './support/bare-append.ts';
import { importSample } from './support/import-sample.ts';
import { print, reportRatio, runPairs } from './support/pairs.ts';
import { sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';

const LINES = 100_000;
const BATCH_LINES = 1_000;
const READ_BYTES = 256 * 1024;

/**
 * Measures the import of a file into a fresh store, against a bare loop that appends the same bytes in the same
 * batches.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const file = join(folder, 'sample.jsonl');
    await pipeline(sampleFile({ lines: LINES }), createWriteStream(file));
    print(`  ${LINES.toLocaleString('en')} lines, ${Math.round(statSync(file).size / 1e6)} MB`);
    let run = 0;
    const freshStore = async (): Promise<string> => {
      const runFolder = join(folder, `run-${run++}`);
      mkdirSync(runFolder, { mode: 0o700 });
      return join(runFolder, 'events.db');
    };
    const template = await freshStore();
    await importInto(template, file);
    const events = storedEvents(template);
    const pairs = await runPairs({
      baseline: async () => perSecond(await appendBare(await freshStore(), events, BATCH_LINES)),
      ours: async () => importInto(await freshStore(), file),
    });
    return reportRatio({ what: 'import', unit: 'events/s', pairs, target: { ratio: 0.4, is: 'at least' } });
  });
}

async function importInto(path: string, file: string): Promise<number> {
  const store = openSqliteEventStore({ path, clock: systemClock });
  const input = createReadStream(file, { highWaterMark: READ_BYTES });
  const startedAtMs = performance.now();
  await importSample({ store, input, lines: LINES });
  const rate = perSecond(performance.now() - startedAtMs);
  await store.close();
  return rate;
}

function perSecond(tookMs: number): number {
  return (LINES * 1_000) / tookMs;
}
