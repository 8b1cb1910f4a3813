import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../src/base/clock.ts';
import { sampleAccount } from '../src/customers/sample/sample-directory.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import { applyAccounts } from '../src/operator/apply/apply-accounts.ts';
import { appendBare, storedEvents } from './support/bare-append.ts';
import { print, reportBelow, reportRatio, runPairs } from './support/pairs.ts';
import { runFuel } from './support/run-fuel.ts';
import { inScratchFolder } from './support/scratch.ts';

/** The accounts of one run of a pair. The command gets five times as many. */
const ACCOUNTS = Number(process.env.BENCH_ACCOUNTS ?? 20_000);
const MAX_SECONDS = 300;
const MAX_PEAK_MB = 300;
const READ_BYTES = 256 * 1024;

/**
 * Applying accounts to an empty store, against a bare loop that appends the same bytes in as many commits; then the
 * command with five times the accounts, and once more, when it changes nothing.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const file = join(folder, 'accounts.jsonl');
    await writeAccounts(file, ACCOUNTS);
    let runs = 0;
    const freshStore = (): string => {
      const runFolder = join(folder, `run-${runs++}`);
      mkdirSync(runFolder, { mode: 0o700 });
      return join(runFolder, 'events.db');
    };
    const template = freshStore();
    const { commits } = await applyTo(template, file);
    const events = storedEvents(template);
    const perCommit = Math.ceil(events.length / commits);
    print(
      `  ${ACCOUNTS.toLocaleString('en')} accounts, ${Math.round(statSync(file).size / 1e6)} MB, ` +
        `${events.length.toLocaleString('en')} events in ${commits} commits`,
    );
    const perSecond = (tookMs: number): number => (events.length * 1_000) / tookMs;
    const pairs = await runPairs({
      baseline: async () => perSecond(await appendBare(freshStore(), events, perCommit)),
      ours: async () => perSecond((await applyTo(freshStore(), file)).tookMs),
    });
    const target = { ratio: 0.25, is: 'at least' } as const;
    const isQuick = reportRatio({ what: 'apply', unit: 'events/s', pairs, target });
    return (await command(folder)) && isQuick;
  });
}

async function command(folder: string): Promise<boolean> {
  const file = join(folder, 'many.jsonl');
  const accounts = 5 * ACCOUNTS;
  await writeAccounts(file, accounts);
  const given = { dataDir: join(folder, 'data'), stdin: file };
  const met: boolean[] = [];
  for (const what of ['applied to an empty store', 'applied again, unchanged']) {
    const { tookMs, peakMb } = await runFuel(['account', 'apply', '-', '--json'], given);
    const name = `${accounts.toLocaleString('en')} accounts ${what}`;
    met.push(reportBelow({ what: name, unit: 's', value: tookMs / 1_000, limit: MAX_SECONDS }));
    met.push(reportBelow({ what: '  peak resident set', unit: 'MB', value: peakMb, limit: MAX_PEAK_MB }));
  }
  return met.every((isMet) => isMet);
}

async function applyTo(path: string, file: string): Promise<{ tookMs: number; commits: number }> {
  const store = openSqliteEventStore({ path, clock: systemClock });
  let commits = 0;
  const startedAtMs = performance.now();
  const counts = await applyAccounts({
    store,
    input: createReadStream(file, { highWaterMark: READ_BYTES }),
    author: { actor: 'bench', command: 'fuel account apply' },
    clock: systemClock,
    dryRun: false,
    onRefused: (lineNumber, reason) => {
      throw new Error(`line ${lineNumber} was refused: ${reason}`);
    },
    onProgress: () => {
      commits += 1;
    },
    signal: new AbortController().signal,
  });
  const tookMs = performance.now() - startedAtMs;
  await store.close();
  if (counts.applied !== ACCOUNTS) throw new Error(`applied ${counts.applied} of ${ACCOUNTS}`);
  return { tookMs, commits };
}

async function writeAccounts(file: string, count: number): Promise<void> {
  await pipeline(Readable.from(accountLines(count)), createWriteStream(file));
}

function* accountLines(count: number): Generator<string> {
  for (let id = 1; id <= count; id++) {
    const { name, groups, corporates } = sampleAccount(id);
    const line = {
      account_id: id,
      name,
      integration: 'on',
      contacts: [`fleet@customer-${id}.example`],
      profiles: [{ profile: 'standard', from: '2026-01-01T00:00:00Z', to: null }],
      groups,
      corporates: corporates.map((corporate) => ({
        id: corporate.id,
        name: corporate.name,
        group_id: corporate.group?.id ?? null,
      })),
    };
    yield `${JSON.stringify(line)}\n`;
  }
}
