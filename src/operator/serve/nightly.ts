import { schedule as cron } from 'node-cron';
import { retentionMs } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { isUnavailable } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { gently } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { RunningProcess } from '../../service/service.ts';
import { proveLog } from '../audit/prove-log.ts';
import { type Repaired, verifyLastDays } from '../verify/verify-last-days.ts';

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
  readonly verify: (signal: AbortSignal) => Promise<Repaired>;
  readonly onRepaired: (repaired: Repaired) => void;
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
 * Verifies once and proves what was sealed since the last time. It uses at most half of the main thread, in steps of a few
 * milliseconds. Rejects when the signal aborts.
 */
export async function verifyNight(
  {
    engines,
    config,
    directory,
    clock,
    log,
  }: Pick<RunningProcess, 'engines' | 'config' | 'directory' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<Repaired> {
  const author = { actor: 'system', command: 'nightly verification' };
  const work = { store: engines.store(), clock, log, author, signal, rest: gently(signal) };
  const repaired = await verifyLastDays({
    ...work,
    view: () => engines.view(),
    queue: () => engines.queue(),
    accountIds: Iterator.from(directory.accounts()).map(({ id }) => id),
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
  });
  await proveLog({ ...work, config });
  return repaired;
}
