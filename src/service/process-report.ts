import { type Clock, sinceBoot } from '../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../base/coordination/coordination.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { EventStore } from '../event-store/event-store.ts';
import type { Standing } from './ops/standing.ts';

const MIN_INTERVAL_MS = 50;
const HEARTBEAT_MS = PROCESS_MAX_AGE_MS / 3;

export interface ProcessReportOptions {
  readonly coordination: Pick<Coordination, 'report' | 'leave'>;
  readonly store: Pick<EventStore, 'head'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly id: string;
  readonly roles: readonly string[];
  /** The names of its directories: the main thread's, and those of threads that have their own. */
  readonly directories: readonly string[];
  readonly standing: Standing;
}

/**
 * Reports to the other processes that this one is alive and how far its directories are: at once when the last of them has
 * moved (at most every 50 ms), and every 2 s in any case. `fuel … --wait` reads it. Keeps the standing up to date.
 */
export class ProcessReport {
  readonly #options: ProcessReportOptions;
  readonly #startedAtMs: number;
  readonly #ending = new AbortController();
  readonly #positions = new Map<string, number>();
  /** Of the directory that is furthest behind, once all have one. */
  #position: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** When it fires. This and the other times here are milliseconds since the boot. */
  #dueAtMs = Infinity;
  #lastAtMs = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: ProcessReportOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.now();
    this.#schedule(0);
  }

  /** To be called with the position of each directory of the process, as it moves. */
  moved(directory: string, position: number): void {
    this.#positions.set(directory, position);
    if (this.#positions.size < this.#options.directories.length) return;
    const behind = [...this.#positions.values()].reduce((a, b) => Math.min(a, b));
    if (behind === this.#position) return;
    this.#position = behind;
    this.#schedule(Math.max(0, this.#lastAtMs + MIN_INTERVAL_MS - sinceBoot.now()));
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    world.clearTimeout(this.#timer);
    await this.#sending;
    const { coordination, id, log } = this.#options;
    try {
      await coordination.leave(id);
    } catch (error) {
      log.warn({ err: error }, 'the process report could not be removed at the end; it expires after 6 s');
    }
  }

  /** Never later than it was scheduled for already. */
  #schedule(afterMs: number): void {
    const dueAtMs = sinceBoot.now() + afterMs;
    if (this.#ending.signal.aborted || dueAtMs >= this.#dueAtMs) return;
    this.#dueAtMs = dueAtMs;
    world.clearTimeout(this.#timer);
    this.#timer = world.setTimeout(() => {
      this.#dueAtMs = Infinity;
      this.#sending = this.#sending.then(() => this.#send());
    }, afterMs);
  }

  async #send(): Promise<void> {
    const { signal } = this.#ending;
    if (signal.aborted) return;
    const { coordination, store, clock, log, id, roles, standing } = this.#options;
    this.#lastAtMs = sinceBoot.now();
    const knownUntilMs = this.#lastAtMs + PROCESS_MAX_AGE_MS;
    const self = { id, roles, ...world.self(), startedAtMs: this.#startedAtMs };
    try {
      await coordination.report({ ...self, seenAtMs: clock.now(), directoryPosition: this.#position });
      if (!standing.isKnown(sinceBoot.now())) standing.join(store, { log, signal });
      standing.knownUntil(knownUntilMs);
    } catch (error) {
      log.warn({ err: error }, 'the process report failed; it is retried in 2 s');
    }
    this.#schedule(HEARTBEAT_MS);
  }
}
