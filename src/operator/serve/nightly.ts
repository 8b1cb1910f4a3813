import { randomInt } from 'node:crypto';
import { schedule as cron } from 'node-cron';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import type { ThreadHost } from '../../service/threads/job.ts';
import { startJob } from '../../service/threads/start-job.ts';
import type { Repaired } from '../verify/verify-last-days.ts';

const LEASE = 'agreement';
/** Of several processes one judges a night: the lease is kept after the work is done. */
const LEASE_MS = 6 * 3_600_000;
const HOUR = 3;
/** Two days of events stream through it; what it keeps is eight bytes a transaction. */
const MEMORY = { youngMb: 32, oldMb: 512 };

export type Schedule = (expression: string, work: () => Promise<void>) => { destroy(): unknown };

export interface NightlyOptions {
  readonly coordination: Coordination;
  /** Names this process among those that may take the night's work. */
  readonly holder: string;
  readonly log: Log;
  /** Judges and repairs; stops when the signal aborts. */
  readonly verify: (signal: AbortSignal) => Promise<Repaired>;
  readonly onRepaired: (repaired: Repaired) => void;
  readonly schedule?: Schedule;
}

/**
 * Has the last two days judged every night between three and four by the machine's clock, at a minute that each process
 * draws. A night that fails is left to the next one. Returns what stops it.
 */
export function startNightly(options: NightlyOptions): { stop(): Promise<void> } {
  const { schedule = (expression, work) => cron(expression, work, { noOverlap: true }) } = options;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const task = schedule(`${randomInt(60)} ${HOUR} * * *`, async () => {
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

/** Judges and repairs in its own thread, so that no page and no attempt waits for it. Rejects when `signal` stops it. */
export async function verifyInThread(host: ThreadHost, signal: AbortSignal): Promise<Repaired> {
  let repaired: Repaired | undefined;
  const onResult = (value: unknown): void => {
    repaired = value as Repaired;
  };
  await startJob(host, { job: 'night', log: { role: 'agreement' }, memory: MEMORY, signal, onResult }).ended;
  if (repaired === undefined) throw new Error('the nightly verification was stopped');
  return repaired;
}
