import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Signal } from '../signal.ts';
import type { Database } from './database.ts';

const POLL_MS = 20; // seen within 25 ms, at half a percent of a core: what costs is waking up, not looking
/** A thread hears from the main thread; it looks for itself only in case nobody else does. */
const THREAD_POLL_MS = 500;

/**
 * Notifies its listeners when something may have been committed to a file: at once for a commit of this process
 * (`notify`, in any thread), within `POLL_MS` for a commit of another process. Only the main thread polls that
 * often, with one timer for all listeners, and notifies the other threads.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #listeners = new Set<Pick<Signal, 'notify'>>();
  readonly #threads: BroadcastChannel;
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;

  /** `pollMs`: how soon a commit of another process is seen at the latest. */
  constructor(db: Database, { pollMs = POLL_MS } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#notifyHere();
    this.#threads.unref();
  }

  /** Rejects a closed file with `STORE_CLOSED`. */
  add(listener: Pick<Signal, 'notify'>): void {
    if (this.#timer === undefined) {
      this.#version = this.#db.dataVersion();
      this.#timer = setInterval(() => this.#poll(), this.#pollMs);
      this.#timer.unref(); // a waiter keeps the process alive, the poll does not
    }
    this.#listeners.add(listener);
  }

  remove(listener: Pick<Signal, 'notify'>): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop();
  }

  notify(): void {
    this.#threads.postMessage(null);
    this.#notifyHere();
  }

  /** Wakes whoever waits: the next read finds the file closed. */
  close(): void {
    this.#stop();
    this.#threads.close();
    this.#notifyHere();
  }

  #notifyHere(): void {
    for (const listener of this.#listeners) listener.notify();
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
    this.notify();
  }
}
