import { schedule as cron } from 'node-cron';
import { accountIds } from '../../accounts/rows/stored-account.ts';
import { retentionMs } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { FuelError, isUnavailable } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { gently } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { RunningProcess } from '../../service/service.ts';
import { type VerifyAccountsOptions, verifyAccounts } from '../accounts/verify-accounts.ts';
import { proveLog } from '../audit/prove-log.ts';
import { type Night, verifyLastDays, WHERE } from '../verify/verify-last-days.ts';

/** The most accounts that a log line names. */
const MAX_NAMED = 20;
const LEASE = 'agreement';
/** The lease is kept after the work is done, so that only one of several processes verifies each night. */
const LEASE_MS = 6 * 3_600_000;

export type Schedule = (expression: string, work: () => Promise<void>) => { destroy(): unknown };

export interface NightlyOptions {
  readonly coordination: Pick<Coordination, 'acquire'>;
  /** Identifies this process as the holder of the lease. */
  readonly holder: string;
  readonly log: Log;
  /** Verifies and repairs. It stops when the signal aborts. */
  readonly verify: (signal: AbortSignal) => Promise<Night>;
  readonly onRepaired: (repaired: Night) => void;
  readonly schedule?: Schedule | undefined;
}

/**
 * Verifies the last two days every night between three and four by the machine's clock, at a random minute in each process.
 */
export function startNightly(options: NightlyOptions): { stop(): Promise<void> } {
  const { schedule = (expression, work) => cron(expression, work, { noOverlap: true }) } = options;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const task = schedule(`${world.randomInt(60)} 3 * * *`, async () => {
    running = verifyOnce(options, stopping.signal);
    await running;
  });
  return {
    async stop() {
      stopping.abort();
      await task.destroy();
      await running;
    },
  };
}

async function verifyOnce(options: NightlyOptions, signal: AbortSignal): Promise<void> {
  const { coordination, holder, log, verify, onRepaired } = options;
  try {
    if (!(await coordination.acquire(LEASE, holder, LEASE_MS))) return;
    signal.throwIfAborted();
    onRepaired(await verify(signal));
  } catch (error) {
    if (signal.aborted) return;
    const level = isUnavailable(error) ? 'warn' : 'error';
    log[level]({ err: error }, 'the last two days could not be verified; trying next night');
  }
}

/**
 * Verifies the last two days and all accounts, and proves what was sealed since the last time. It uses at most half of the main thread, in steps of a few
 * milliseconds. Rejects when the signal aborts.
 */
export async function verifyNight(
  { engines, config, clock, log }: Pick<RunningProcess, 'engines' | 'config' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<Night> {
  const author = { actor: 'system', command: 'nightly verification' };
  const work = { store: engines.store(), clock, log, author, signal, rest: gently(signal) };
  const tables = engines.accounts();
  const ofAccounts = await verifyAllAccounts({ ...work, tables });
  const repaired = await verifyLastDays({
    ...work,
    view: () => engines.view(),
    queue: () => engines.queue(),
    accountIds: accountIds(tables),
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
  });
  await proveLog({ ...work, config });
  const { accounts } = ofAccounts;
  return { ...repaired, accounts, damage: [...repaired.damage, ...ofAccounts.damage] };
}

/** Returns how many accounts were repaired, and what is damaged. Rows that are being made are verified the next night. */
async function verifyAllAccounts({
  log,
  ...options
}: Omit<VerifyAccountsOptions, 'repair'> & { readonly log: Log }): Promise<
  Pick<Night, 'accounts' | 'damage'>
> {
  try {
    const verified = await verifyAccounts({ ...options, repair: true });
    const { checked, differences, remaining, damage } = verified;
    for (const each of damage) log.error({ ...each }, `damaged: ${describeDamage(each)}; ${RESTORE_EVENTS}`);
    const found = { checked, repaired: differences.length - remaining.length, left: remaining.length };
    const which = differences.slice(0, MAX_NAMED).map(({ accountId }) => accountId);
    if (differences.length === 0)
      log.info(found, 'verified the rows of accounts: they are what the events call for');
    else log.error({ ...found, accounts: which }, `rows of accounts differed from the events: ${WHERE}`);
    return { accounts: found.repaired, damage };
  } catch (error) {
    if (!(error instanceof FuelError) || error.code !== 'REFUSED') throw error;
    log.warn({ reason: error.message }, 'the rows of accounts could not be verified; trying next night');
    return { accounts: 0, damage: [] };
  }
}
