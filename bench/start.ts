import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openMasterKeys } from '../src/accounts/master-key.ts';
import { systemClock } from '../src/base/clock.ts';
import { loadConfig, openEngines } from '../src/engines/engines.ts';
import { storeIdentity } from '../src/event-store/store-identity.ts';
import { ENDS } from '../src/push/ends.ts';
import { NOTICES } from '../src/push/notices/notifier.ts';
import { recordAccounts } from './support/many-accounts.ts';
import { median, print, reportBelow } from './support/pairs.ts';
import { residentMb } from './support/process-figures.ts';
import { runFuel } from './support/run-fuel.ts';
import { inScratchFolder } from './support/scratch.ts';
import { type RunningServe, startServe } from './support/serve.ts';

const ACCOUNTS = Number(process.env.BENCH_ACCOUNTS ?? 100_000);
const STARTS = 3;
/** The first build makes 5,000 accounts a second. */
const MAX_SECONDS = { without: ACCOUNTS / 5_000, with: 1, command: 0.5 };
const MAX_MB = 200;
const SETTLES_MS = 5_000;

/**
 * Measures a start with many accounts, in all roles, without the rows of accounts and with them: the memory that it takes, and how
 * long commands on one account take meanwhile.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    const config = loadConfig({ FUEL_DATA_DIR: dataDir }, 'command');
    const engines = await openEngines(config, systemClock);
    const prefix = await recordAccounts(engines.store(), openMasterKeys(config), ACCOUNTS);
    const events = await engines.store().head();
    // The same as for a service that has run since the first account.
    const storeId = await storeIdentity(engines.store(), systemClock);
    for (const follower of [NOTICES, ENDS])
      await engines.coordination().moveCheckpoint(follower, { storeId, position: events, anchor: undefined });
    await engines.close();
    print(`  ${ACCOUNTS.toLocaleString('en')} accounts, ${events.toLocaleString('en')} events`);

    const first = await started(dataDir);
    await first.serve.stop();
    const seconds: number[] = [];
    for (let start = 1; start < STARTS; start++) {
      const { serve, tookSeconds } = await started(dataDir);
      seconds.push(tookSeconds);
      await serve.stop();
    }
    const { serve, tookSeconds } = await started(dataDir);
    seconds.push(tookSeconds);
    await sleep(SETTLES_MS);
    const resident = residentMb(serve.pid) ?? Number.NaN;
    const commands = await timeCommands(folder, dataDir, [
      ['account', 'show', String(ACCOUNTS / 2)],
      ['key', 'show', prefix],
    ]);
    await serve.stop();
    const inSeconds = (what: string, value: number, limit: number) =>
      reportBelow({ what, unit: 's', value, limit });
    return [
      inSeconds('ready without rows of accounts', first.tookSeconds, MAX_SECONDS.without),
      inSeconds('ready with rows of accounts', median(seconds), MAX_SECONDS.with),
      reportBelow({ what: 'resident', unit: 'MB', value: resident, limit: MAX_MB }),
      ...commands.map(({ name, value }) => inSeconds(name, value, MAX_SECONDS.command)),
    ].every((met) => met);
  });
}

async function started(dataDir: string): Promise<{ serve: RunningServe; tookSeconds: number }> {
  const startedAtMs = performance.now();
  const serve = await startServe({ dataDir });
  return { serve, tookSeconds: (performance.now() - startedAtMs) / 1_000 };
}

async function timeCommands(folder: string, dataDir: string, commands: readonly string[][]) {
  const stdin = join(folder, 'nothing');
  writeFileSync(stdin, '');
  const timed: { name: string; value: number }[] = [];
  for (const args of commands) {
    const seconds: number[] = [];
    for (let run = 0; run < STARTS; run++)
      seconds.push((await runFuel(args, { dataDir, stdin })).tookMs / 1_000);
    timed.push({ name: `fuel ${args.slice(0, 2).join(' ')}`, value: median(seconds) });
  }
  return timed;
}
