import type { Log } from '../log.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** One subscription's view of whether the engine is there: says once that it is away, and once that it is back. */
export class EventStoreDbOutage {
  readonly #log: Log;
  readonly #fields: Readonly<Record<string, unknown>>;
  #sinceMs: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  /** `fields` tell in the log which subscription it is. */
  constructor(log: Log, fields: Readonly<Record<string, unknown>>) {
    this.#log = log;
    this.#fields = fields;
  }

  began(error: unknown): void {
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = performance.now();
    const reason = error instanceof Error ? error.message : String(error);
    this.#log.warn({ ...this.#fields, reason }, 'EventStoreDB is away: the subscription waits for it');
  }

  over(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#sinceMs === undefined) return;
    const awayMs = Math.round(performance.now() - this.#sinceMs);
    this.#sinceMs = undefined;
    this.#log.info({ ...this.#fields, away_ms: awayMs }, 'EventStoreDB is back: the subscription goes on');
  }

  /** Before the next try: longer each time, and different in each process, so that they do not come all at once. */
  nextPauseMs(): number {
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    return pauseMs;
  }
}
