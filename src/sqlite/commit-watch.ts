import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Signal } from '../signal.ts';
import type { Database } from './database.ts';

const POLL_MS = 20; // takes half a percent of a core
/** The main thread notifies the others; they poll only in case it does not watch the file. */
const THREAD_POLL_MS = 500;

/**
 * Notifies its listeners when something may have been committed to a file: at once for a commit of this process
 * (`notify`, in any thread), within `POLL_MS` for one of another process. One timer polls for all listeners; only the
 * main thread polls that often, and notifies the other threads.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #listeners = new Set<Pick<Signal, 'notify'>>();
  readonly #threads: BroadcastChannel;
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;

  /** `pollMs`: a commit of another process is noticed within this time. */
  constructor(db: Database, { pollMs = POLL_MS } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#notifyHere();
    this.#threads.unref();
  }

  /** Throws `STORE_CLOSED` where the file is closed. */
  add(listener: Pick<Signal, 'notify'>): void {
    if (this.#timer === undefined) {
      this.#version = this.#db.dataVersion();
      this.#timer = setInterval(() => this.#poll(), this.#pollMs);
      this.#timer.unref(); // only the waiter itself keeps the process alive
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

  /** Notifies all listeners: their next read finds the file closed. */
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
      // The timer has no caller to report to: the listeners are notified, and their next read fails with the error.
    }
    if (version === this.#version) return;
    if (version !== undefined) this.#version = version;
    this.notify();
  }
}
