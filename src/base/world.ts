import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Server } from 'node:net';
import { hostname } from 'node:os';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Worker, type WorkerOptions } from 'node:worker_threads';

const singles = new Map<new () => unknown, unknown>();

/** A thread as seen by its starter. */
export type RunningThread = Pick<Worker, 'on' | 'once' | 'postMessage'>;

/**
 * Everything non-deterministic that the core uses: time, timers, random numbers, and what a process gets from its
 * machine (process id, threads, listeners). The core uses them only from here, so that the simulation
 * (`test/simulation`) can replace them and one seed gives one history.
 */
export const world = {
  /** The two clocks, which are read through `systemClock` and `steadyClock` (`clock.ts`). */
  clockMs: (): number => Date.now(),
  steadyMs: (): number => Number(process.hrtime.bigint()) / 1e6,
  get setTimeout() {
    return setTimeout; // read at each call, since tests replace it
  },
  get clearTimeout() {
    return clearTimeout;
  },
  get setInterval() {
    return setInterval;
  },
  get clearInterval() {
    return clearInterval;
  },
  setImmediate,
  sleep,
  nextTurn,
  timeoutSignal: (ms: number): AbortSignal => AbortSignal.timeout(ms),
  /** The only one of its kind in this thread. */
  single<T>(Kind: new () => T): T {
    if (!singles.has(Kind)) singles.set(Kind, new Kind());
    return singles.get(Kind) as T;
  },
  random: (): number => Math.random(),
  randomBytes,
  randomInt,
  randomUUID,
  /** The process id and the name of the machine. */
  self: (): { readonly pid: number; readonly host: string } => ({ pid: process.pid, host: hostname() }),
  thread: (entry: URL, options: WorkerOptions): RunningThread => new Worker(entry, options),
  listen: (server: Server, place: object, listening: () => void): void =>
    void server.listen(place, listening),
};
