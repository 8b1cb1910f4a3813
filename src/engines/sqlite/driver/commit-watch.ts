import { resolve } from 'node:path';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { Signal } from '../../../base/signal.ts';
import type { Database } from './database.ts';

/** It takes half a percent of a core. */
const POLL_MS = 20;
/** The poll interval of other threads, which the main thread notifies. They poll in case it does not poll the file. */
const THREAD_POLL_MS = 500;

/**
 * Notifies its listeners when something may have been committed to a file: at once of commits of this process (by `notify`,
 * in any thread), and within `pollMs` of those of another one. One timer polls for all listeners. Only the main thread polls
 * that often, and it notifies the other threads.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #listeners = new Set<Pick<Signal, 'notify'>>();
  readonly #threads: BroadcastChannel;
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;

  constructor(db: Database, { pollMs = POLL_MS } = {}) {
    this.#db = db;
    this.#pollMs = isMainThread ? pollMs : Math.max(pollMs, THREAD_POLL_MS);
    this.#threads = new BroadcastChannel(`commits ${resolve(db.path)}`);
    this.#threads.onmessage = () => this.#heard();
    this.#threads.unref();
  }

  /** Throws `STORE_CLOSED` if the file is closed. */
  add(listener: Pick<Signal, 'notify'>): void {
    if (this.#timer === undefined) {
      this.#version = this.#db.dataVersion();
      this.#timer = setInterval(() => this.#poll(), this.#pollMs).unref(); // only whoever waits keeps the process alive
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
    clearInterval(this.#timer);
    this.#timer = undefined;
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
