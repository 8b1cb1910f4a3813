import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Bell } from '../signal.ts';
import type { Database } from './database.ts';

const POLL_MS = 20; // seen within 25 ms, at half a percent of a core: what costs is waking up, not looking
/** A thread hears from the main thread; it looks for itself only in case nobody else does. */
const THREAD_POLL_MS = 500;

/**
 * Rings every added bell when something may have been committed to a file: at once for a commit of this process
 * (`ring`, in whichever thread), within `POLL_MS` for others. Only the main thread looks for other processes
 * that often, one timer for all bells, none while there is no bell; it tells the other threads.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #bells = new Set<Pick<Bell, 'ring'>>();
  readonly #threads: BroadcastChannel;
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;

  /** `pollMs`: how soon a commit of another process is seen at the latest. */
  constructor(db: Database, { pollMs = POLL_MS } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#ringHere();
    this.#threads.unref();
  }

  /** Rejects a closed file with `STORE_CLOSED`. */
  add(bell: Pick<Bell, 'ring'>): void {
    if (this.#timer === undefined) {
      this.#version = this.#db.dataVersion();
      this.#timer = setInterval(() => this.#poll(), this.#pollMs);
      this.#timer.unref(); // who waits on a bell keeps the process alive, not the look for other processes
    }
    this.#bells.add(bell);
  }

  remove(bell: Pick<Bell, 'ring'>): void {
    this.#bells.delete(bell);
    if (this.#bells.size === 0) this.#stop();
  }

  ring(): void {
    this.#threads.postMessage(null);
    this.#ringHere();
  }

  /** Wakes whoever waits: the next read finds the file closed. */
  close(): void {
    this.#stop();
    this.#threads.close();
    this.#ringHere();
  }

  #ringHere(): void {
    for (const bell of this.#bells) bell.ring();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #poll(): void {
    let version: number | undefined;
    try {
      version = this.#db.dataVersion();
    } catch {
      // A timer has nobody to tell: the waiters' own next read meets the fault and reports it.
    }
    if (version === this.#version) return;
    if (version !== undefined) this.#version = version;
    this.ring();
  }
}
