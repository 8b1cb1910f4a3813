import { hostname } from 'node:os';
import { type Clock, sinceBoot } from '../clock.ts';
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
  /** When it fires. This and the other times here are milliseconds since the boot. */
  #dueAtMs = Infinity;
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
    /** Called after each report, with the time since the boot until which the others count this process as alive. */
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
    this.#schedule(Math.max(0, this.#lastAtMs + MIN_INTERVAL_MS - sinceBoot.now()));
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

  /** Never later than it was scheduled for already. */
  #schedule(afterMs: number): void {
    const dueAtMs = sinceBoot.now() + afterMs;
    if (dueAtMs >= this.#dueAtMs) return;
    this.#dueAtMs = dueAtMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#dueAtMs = Infinity;
      this.#sending = this.#sending.then(() => this.#send());
    }, afterMs);
  }

  async #send(): Promise<void> {
    if (this.#stopped) return;
    this.#lastAtMs = sinceBoot.now();
    const knownUntilMs = this.#lastAtMs + PROCESS_MAX_AGE_MS;
    const place = { pid: process.pid, host: hostname(), seenAtMs: this.#clock.now() };
    try {
      await this.#coordination.report({ ...this.#self, ...place, directoryPosition: this.#position });
      const wasKnown = sinceBoot.now() < this.#knownUntilMs;
      this.#knownUntilMs = knownUntilMs;
      if (!wasKnown) this.#onKnown();
      this.#onReported(knownUntilMs);
    } catch (error) {
      this.#log.warn({ err: error }, 'the process report failed; it is retried in 2 s');
    }
    if (!this.#stopped) this.#schedule(HEARTBEAT_MS);
  }
}
