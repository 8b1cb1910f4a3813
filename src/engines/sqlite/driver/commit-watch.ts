import { type FSWatcher, watch } from 'node:fs';
import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Signal } from '../../../base/signal.ts';
import type { Database } from './database.ts';

/** Where the file is not watched. Takes half a percent of a core. */
const POLL_MS = 20;
/** The main thread notifies the others; they poll only in case it does not watch the file. */
const THREAD_POLL_MS = 500;
/** In case the watch of the file misses something. */
const IDLE_POLL_MS = 500;
/**
 * A write is seen before its commit can be read, which has to be durable first: usually within some milliseconds, on a
 * busy disk later. So the next poll comes after a quarter of the time since the write, and not before this.
 */
const SOON_POLL_MS = 4;

/**
 * Notifies its listeners when something may have been committed to a file: at once for a commit of this process
 * (`notify`, in any thread), for one of another process when it has been written, or within `pollMs` where the system
 * does not report writes. One timer polls for all listeners; only the main thread polls that often, and notifies the
 * other threads.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #listeners = new Set<Pick<Signal, 'notify'>>();
  readonly #threads: BroadcastChannel;
  readonly #pollMs: number;
  readonly #watchesFile: boolean;
  #file: FSWatcher | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;

  /** `pollMs`: a commit of another process is noticed within this time where `watchesFile` is false. */
  constructor(db: Database, { pollMs = POLL_MS, watchesFile = process.platform === 'linux' } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#watchesFile = watchesFile && isMainThread;
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#heard();
    this.#threads.unref();
  }

  /** Throws `STORE_CLOSED` where the file is closed. */
  add(listener: Pick<Signal, 'notify'>): void {
    if (this.#timer === undefined) {
      this.#version = this.#db.dataVersion();
      if (this.#watchesFile) this.#file = this.#watchLog();
      this.#pollLater();
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

  /** Of another connection of this process: its commit is no news to the next poll. */
  #heard(): void {
    if (this.#timer !== undefined) this.#readVersion();
    this.#notifyHere();
  }

  #notifyHere(): void {
    for (const listener of this.#listeners) listener.notify();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#file?.close();
    this.#file = undefined;
  }

  /** Of the write-ahead log, which exists as long as the file is open; `undefined` where it can't be watched. */
  #watchLog(): FSWatcher | undefined {
    try {
      const watcher = watch(`${this.#db.path}-wal`, { persistent: false }, () => this.#written());
      return watcher.on('error', () => {
        watcher.close();
        this.#file = undefined;
      });
    } catch {
      return undefined; // polling finds the same a little later
    }
  }

  #written(): void {
    const isSoon = this.#intervalMs() <= SOON_POLL_MS;
    this.#writtenAtMs = performance.now();
    if (!isSoon && this.#timer !== undefined) this.#pollLater();
  }

  #intervalMs(): number {
    if (this.#file === undefined) return this.#pollMs;
    const soonMs = Math.max(SOON_POLL_MS, (performance.now() - this.#writtenAtMs) / 4);
    return Math.min(soonMs, Math.max(this.#pollMs, IDLE_POLL_MS));
  }

  #pollLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#pollLater();
      this.#poll();
    }, this.#intervalMs());
    this.#timer.unref(); // only the waiter itself keeps the process alive
  }

  #poll(): void {
    if (this.#readVersion()) this.notify();
  }

  /** Whether another connection has committed since the last look. */
  #readVersion(): boolean {
    const before = this.#version;
    try {
      this.#version = this.#db.dataVersion();
    } catch {
      return true; // nobody to report to here: the listeners are notified, and their next read fails with the error
    }
    return this.#version !== before;
  }
}
