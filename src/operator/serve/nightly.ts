import { schedule as cron } from 'node-cron';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import type { ThreadHost } from '../../service/threads/job.ts';
import { startJob } from '../../service/threads/start-job.ts';
import type { Repaired } from '../verify/verify-last-days.ts';

/** Of several processes one does a day's work: the lease is kept after it is done. */
const LEASE_MS = 6 * 3_600_000;
/** Two days of events stream through it; what it keeps is eight bytes a transaction. */
const MEMORY = { youngMb: 32, oldMb: 512 };

export type Schedule = (expression: string, work: () => Promise<void>) => { destroy(): unknown };

export interface DailyOptions {
  readonly coordination: Pick<Coordination, 'acquire'>;
  /** Names this process among those that may take the work. */
  readonly holder: string;
  readonly log: Log;
  /** Of the work. */
  readonly lease: string;
  /** By the machine's clock: it begins in this hour, at a minute that each process draws. */
  readonly hour: number;
  /** Stops when the signal aborts. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  /** The line of the log where it fails: it is left to the next day. */
  readonly failure: string;
  readonly schedule?: Schedule | undefined;
}

export interface NightlyOptions extends Omit<DailyOptions, 'lease' | 'hour' | 'work' | 'failure'> {
  /** Judges and repairs; stops when the signal aborts. */
  readonly verify: (signal: AbortSignal) => Promise<Repaired>;
  readonly onRepaired: (repaired: Repaired) => void;
}

/** Has the last two days judged every night between three and four. Returns what stops it. */
export function startNightly({ verify, onRepaired, ...options }: NightlyOptions): { stop(): Promise<void> } {
  return startDaily({
    ...{ ...options, lease: 'agreement', hour: 3 },
    work: async (signal) => onRepaired(await verify(signal)),
    failure: 'the last two days could not be verified; trying next night',
  });
}

/** Has one of the processes do a work every day. Returns what stops it. */
export function startDaily(options: DailyOptions): { stop(): Promise<void> } {
  const { hour, schedule = (expression, work) => cron(expression, work, { noOverlap: true }) } = options;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const task = schedule(`${world.randomInt(60)} ${hour} * * *`, async () => {
    running = workOnce(options, stopping.signal);
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

async function workOnce(options: DailyOptions, signal: AbortSignal): Promise<void> {
  const { coordination, holder, lease, log, work, failure } = options;
  try {
    if (!(await coordination.acquire(lease, holder, LEASE_MS))) return;
    signal.throwIfAborted();
    await work(signal);
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, failure);
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
