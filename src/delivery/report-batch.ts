import { FuelError } from '../errors.ts';
import type { Log } from '../log.ts';
import { levelOf } from '../patience.ts';
import type { ClaimedDelivery, DeliveryQueue, DeliveryReport, WebhookHealth } from './delivery-queue.ts';
import type { Scheduler } from './scheduler.ts';

const TOGETHER_MS = 2;
const MOST_TOGETHER = 200;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface Outcome {
  readonly delivery: ClaimedDelivery;
  readonly report: DeliveryReport;
}

export interface ReportBatchOptions {
  readonly queue: Pick<DeliveryQueue, 'report'>;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Outcomes that arrive within this time are recorded in one commit; 2 ms unless given. */
  readonly togetherMs?: number | undefined;
  /** Called after outcomes are durable, with the health of the lanes whose run changed. */
  readonly onRecorded: (outcomes: readonly Outcome[], health: ReadonlyMap<string, WebhookHealth>) => void;
}

/**
 * Records outcomes in groups. While the store is away they are kept and tried again; there are never more of
 * them than deliveries that were claimed, and none is claimed meanwhile.
 */
export class ReportBatch {
  readonly #options: ReportBatchOptions;
  #waiting: Outcome[] = [];
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  #closed = false;

  constructor(options: ReportBatchOptions) {
    this.#options = options;
  }

  add(outcome: Outcome): void {
    this.#waiting.push(outcome);
    if (this.#flushing === undefined) this.#flushIn(this.#options.togetherMs ?? TOGETHER_MS);
  }

  /** Records what is left, once: outcomes that can't be stored now are lost, and their attempts made again. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer?.();
    await this.#flushing;
    if (this.#waiting.length > 0) await this.#flush();
  }

  #flushIn(delayMs: number): void {
    if (this.#cancelTimer !== undefined || this.#closed) return;
    this.#cancelTimer = this.#options.scheduler.setTimer(delayMs, () => {
      this.#cancelTimer = undefined;
      this.#flushing = this.#flush();
    });
  }

  async #flush(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (this.#waiting.length > 0) {
      const outcomes = this.#waiting.slice(0, MOST_TOGETHER);
      if (await this.#record(outcomes)) {
        this.#waiting = this.#waiting.slice(outcomes.length);
        pauseMs = FIRST_PAUSE_MS;
      } else {
        if (this.#closed) break;
        await this.#pause(pauseMs);
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      }
    }
    this.#flushing = undefined;
  }

  async #record(outcomes: readonly Outcome[]): Promise<boolean> {
    const { queue, log, onRecorded } = this.#options;
    let health: ReadonlyMap<string, WebhookHealth>;
    try {
      health = await queue.report(outcomes.map(({ report }) => report));
    } catch (error) {
      if (error instanceof FuelError && error.code === 'STORE_CLOSED') this.#closed = true;
      log[levelOf(error)](
        { err: error, outcomes: outcomes.length },
        'outcomes of attempts could not be recorded yet',
      );
      return false;
    }
    onRecorded(outcomes, health);
    return true;
  }

  /** Whoever closes waits for its end, two seconds at most. */
  #pause(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.scheduler.setTimer(pauseMs, resolve);
    });
  }
}
