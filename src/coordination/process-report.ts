import { hostname } from 'node:os';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Coordination } from './coordination.ts';

const LEAST_BETWEEN_MS = 50;
const HEARTBEAT_MS = 2_000;
/** A process not seen for this long is taken for dead. */
export const PROCESS_MAX_AGE_MS = 3 * HEARTBEAT_MS;

/**
 * Tells the other processes that this one lives and how far its directory is: at once when the directory has
 * moved (at most every 50 ms), and every 2 s in any case. `fuel … --wait` reads it.
 */
export class ProcessReport {
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #self: { readonly id: string; readonly roles: readonly string[]; readonly startedAtMs: number };
  #position: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #lastAtMs = 0;
  #sending: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: {
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly log: Log;
    readonly id: string;
    readonly roles: readonly string[];
  }) {
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#self = { id: options.id, roles: options.roles, startedAtMs: options.clock.now() };
    this.#schedule(0);
  }

  directoryMoved(position: number): void {
    if (position === this.#position) return;
    this.#position = position;
    this.#schedule(Math.max(0, this.#lastAtMs + LEAST_BETWEEN_MS - this.#clock.now()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#sending;
    try {
      await this.#coordination.leave(this.#self.id);
    } catch (error) {
      this.#log.warn({ err: error }, 'could not report that this process ends; its last report grows old');
    }
  }

  #schedule(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#sending = this.#sending.then(() => this.#send());
    }, afterMs);
  }

  async #send(): Promise<void> {
    if (this.#stopped) return;
    this.#lastAtMs = this.#clock.now();
    const place = { pid: process.pid, host: hostname(), seenAtMs: this.#lastAtMs };
    try {
      await this.#coordination.report({ ...this.#self, ...place, directoryPosition: this.#position });
    } catch (error) {
      this.#log.warn({ err: error }, 'could not report that this process lives; trying again');
    }
    if (!this.#stopped) this.#schedule(HEARTBEAT_MS);
  }
}
