import type { Clock } from '../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../base/coordination/coordination.ts';
import type { Log } from '../base/log.ts';
import { pause } from '../base/pause.ts';
import { world } from '../base/world.ts';

const REPORTS_EVERY_MS = PROCESS_MAX_AGE_MS / 3;

export interface ProcessReportOptions {
  readonly coordination: Pick<Coordination, 'report' | 'removeProcess'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly id: string;
  readonly roles: readonly string[];
}

/** Reports to other processes that this one is alive, every 2 s and at once when it is ready. */
export class ProcessReport {
  readonly #options: ProcessReportOptions;
  readonly #startedAtMs: number;
  readonly #ending = new AbortController();
  readonly #reporting: Promise<void>;
  #isReady = false;
  #again = new AbortController();

  constructor(options: ProcessReportOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.now();
    this.#reporting = this.#report();
  }

  ready(): void {
    this.#isReady = true;
    this.#again.abort();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#reporting;
    const { coordination, id, log } = this.#options;
    try {
      await coordination.removeProcess(id);
    } catch (error) {
      log.warn({ err: error }, 'the process report could not be removed at the end; it expires after 6 s');
    }
  }

  async #report(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      this.#again = new AbortController();
      await this.#send();
      await pause(REPORTS_EVERY_MS, AbortSignal.any([signal, this.#again.signal]));
    }
  }

  async #send(): Promise<void> {
    const { coordination, clock, log, id, roles } = this.#options;
    const self = { id, roles, ...world.self(), startedAtMs: this.#startedAtMs };
    try {
      await coordination.report({ ...self, seenAtMs: clock.now(), isReady: this.#isReady });
    } catch (error) {
      log.warn({ err: error }, 'the process report failed; retrying in 2 s');
    }
  }
}
