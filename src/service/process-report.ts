import { type Clock, steadyClock } from '../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../base/coordination/coordination.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { EventStore } from '../event-store/event-store.ts';
import type { Standing } from './ops/standing.ts';

const MIN_INTERVAL_MS = 50;
const HEARTBEAT_MS = PROCESS_MAX_AGE_MS / 3;

export interface ProcessReportOptions {
  readonly coordination: Pick<Coordination, 'report' | 'removeProcess'>;
  readonly store: Pick<EventStore, 'head'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly id: string;
  readonly roles: readonly string[];
  /** The names of its directories: that of the main thread, and those of threads that have their own. */
  readonly directories: readonly string[];
  readonly standing: Standing;
}

/**
 * Reports to other processes that this one is alive and which position its directories have reached: at once when the
 * slowest has moved (at most every 50 ms), and every 2 s in any case. `fuel … --wait` reads the reports. It also keeps
 * the standing up to date.
 */
export class ProcessReport {
  readonly #options: ProcessReportOptions;
  readonly #startedAtMs: number;
  readonly #ending = new AbortController();
  readonly #positions = new Map<string, number>();
  /** The position of the directory that is furthest behind, once all have one. */
  #position: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires. This and the other times here are milliseconds since the boot. */
  #dueAtMs = Infinity;
  #lastAtMs = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: ProcessReportOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.now();
    this.#schedule(0);
  }

  /** Notes the position of a directory of the process whenever it moves. */
  moved(directory: string, position: number): void {
    this.#positions.set(directory, position);
    if (this.#positions.size < this.#options.directories.length) return;
    const behind = [...this.#positions.values()].reduce((a, b) => Math.min(a, b));
    if (behind === this.#position) return;
    this.#position = behind;
    this.#schedule(Math.max(0, this.#lastAtMs + MIN_INTERVAL_MS - steadyClock.now()));
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    world.clearTimeout(this.#timer);
    await this.#sending;
    const { coordination, id, log } = this.#options;
    try {
      await coordination.removeProcess(id);
    } catch (error) {
      log.warn({ err: error }, 'the process report could not be removed at the end; it expires after 6 s');
    }
  }

  /** Schedules the next report, unless an earlier one is scheduled already. */
  #schedule(afterMs: number): void {
    const dueAtMs = steadyClock.now() + afterMs;
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
    this.#lastAtMs = steadyClock.now();
    const knownUntilMs = this.#lastAtMs + PROCESS_MAX_AGE_MS;
    const self = { id, roles, ...world.self(), startedAtMs: this.#startedAtMs };
    try {
      await coordination.report({ ...self, seenAtMs: clock.now(), directoryPosition: this.#position });
      if (standing.mustJoin(steadyClock.now())) standing.join(store, { log, signal });
      standing.knownUntil(knownUntilMs);
    } catch (error) {
      log.warn({ err: error }, 'the process report failed; retrying in 2 s');
    }
    this.#schedule(HEARTBEAT_MS);
  }
}
