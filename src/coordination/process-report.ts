import { hostname } from 'node:os';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Coordination } from './coordination.ts';

const MIN_INTERVAL_MS = 50;
const HEARTBEAT_MS = 2_000;
/** A process that has not reported for this long counts as dead. */
export const PROCESS_MAX_AGE_MS = 3 * HEARTBEAT_MS;

/**
 * Reports to the other processes that this one is alive and how far its directory is: at once when the directory has
 * moved (at most every 50 ms), and every 2 s in any case. `fuel … --wait` reads it.
 */
export class ProcessReport {
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #self: { readonly id: string; readonly roles: readonly string[]; readonly startedAtMs: number };
  readonly #onKnown: () => void;
  readonly #onReported: (knownUntilMs: number) => void;
  #position: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #lastAtMs = 0;
  #knownUntilMs = 0;
  #sending: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: {
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly log: Log;
    readonly id: string;
    readonly roles: readonly string[];
    /** Called when the others learn of this process, at its start and after a time without a report. */
    readonly onKnown?: () => void;
    /** Called after each report, with the time until which the others count this process as alive. */
    readonly onReported?: (knownUntilMs: number) => void;
  }) {
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#self = { id: options.id, roles: options.roles, startedAtMs: options.clock.now() };
    this.#onKnown = options.onKnown ?? (() => undefined);
    this.#onReported = options.onReported ?? (() => undefined);
    this.#schedule(0);
  }

  directoryMoved(position: number): void {
    if (position === this.#position) return;
    this.#position = position;
    this.#schedule(Math.max(0, this.#lastAtMs + MIN_INTERVAL_MS - this.#clock.now()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#sending;
    try {
      await this.#coordination.leave(this.#self.id);
    } catch (error) {
      this.#log.warn(
        { err: error },
        'the process report could not be removed at the end; it expires after 6 s',
      );
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
      const wasKnown = this.#clock.now() < this.#knownUntilMs;
      this.#knownUntilMs = place.seenAtMs + PROCESS_MAX_AGE_MS;
      if (!wasKnown) this.#onKnown();
      this.#onReported(this.#knownUntilMs);
    } catch (error) {
      this.#log.warn({ err: error }, 'the process report failed; it is retried in 2 s');
    }
    if (!this.#stopped) this.#schedule(HEARTBEAT_MS);
  }
}
