import { schedule as cron } from 'node-cron';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import type { Repaired } from '../verify/verify-last-days.ts';

const LEASE = 'agreement';
/** Of several processes one verifies a night: the lease is kept after it is done. */
const LEASE_MS = 6 * 3_600_000;

export type Schedule = (expression: string, work: () => Promise<void>) => { destroy(): unknown };

export interface NightlyOptions {
  readonly coordination: Pick<Coordination, 'acquire'>;
  /** Names this process among those that may take the work. */
  readonly holder: string;
  readonly log: Log;
  /** Judges and repairs; stops when the signal aborts. */
  readonly verify: (signal: AbortSignal) => Promise<Repaired>;
  readonly onRepaired: (repaired: Repaired) => void;
  readonly schedule?: Schedule | undefined;
}

/**
 * Has the last two days judged every night between three and four by the machine's clock, at a minute that each process
 * draws. Returns what stops it.
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
    if (!signal.aborted)
      log.warn({ err: error }, 'the last two days could not be verified; trying next night');
  }
}
