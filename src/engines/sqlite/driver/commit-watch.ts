import { type FSWatcher, watch } from 'node:fs';
import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Signal } from '../../../base/signal.ts';
import type { Database } from './database.ts';

/** The poll interval if the file is not watched. It takes half a percent of a core. */
const POLL_MS = 20;
/** The poll interval of other threads, which the main thread notifies. They poll in case it does not watch the file. */
const THREAD_POLL_MS = 500;
/** The poll interval while the file is watched, in case the watch misses something. */
const IDLE_POLL_MS = 500;
/**
 * The shortest poll interval. The watch sees a write before its commit can be read, since that must be durable first,
 * which takes some milliseconds, or longer on a busy disk. So the next poll comes after a quarter of the time since the
 * write, but not sooner than this.
 */
const SOON_POLL_MS = 4;

/**
 * Notifies its listeners when something may have been committed to a file. Commits of this process are reported at once
 * (by `notify`, in any thread). Those of another process are reported when they are written, or within `pollMs` if the
 * system does not report writes. One timer polls for all listeners. Only the main thread polls that often, and it
 * notifies the other threads.
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

  /** If `watchesFile` is false, a commit of another process is noticed within `pollMs`. */
  constructor(db: Database, { pollMs = POLL_MS, watchesFile = process.platform === 'linux' } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#watchesFile = watchesFile && isMainThread;
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#heard();
    this.#threads.unref();
  }

  /** Throws `STORE_CLOSED` if the file is closed. */
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

  /** Notifies all listeners, whose next read finds the file closed. */
  close(): void {
    this.#stop();
    this.#threads.close();
    this.#notifyHere();
  }

  /** Another connection of this process has committed. The next poll need not report that again. */
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

  /** Watches the write-ahead log, which exists while the file is open; `undefined` if it can't be watched. */
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
    this.#timer.unref(); // only whoever waits keeps the process alive
  }

  #poll(): void {
    if (this.#readVersion()) this.notify();
  }

  /** True if another connection has committed since the last call. */
  #readVersion(): boolean {
    const before = this.#version;
    try {
      this.#version = this.#db.dataVersion();
    } catch {
      return true; // the listeners are notified, and their next read fails with the error
    }
    return this.#version !== before;
  }
}
