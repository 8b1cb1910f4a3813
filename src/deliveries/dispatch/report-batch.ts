import { reasonOf } from '../../errors.ts';
import { isolateFailures } from '../../isolate.ts';
import type { Log } from '../../log.ts';
import { retryWhileUnavailable } from '../../retry.ts';
import type {
  ClaimedDelivery,
  DeliveryQueue,
  DeliveryReport,
  WebhookHealth,
} from '../queue/delivery-queue.ts';
import { withoutWords } from '../queue/next-state.ts';
import type { Scheduler } from './scheduler.ts';

const TOGETHER_MS = 2;
/** After a commit of so many, which one webhook alone never fills, each of the next shares its cost with more. */
const MANY = 48;
const MANY_TOGETHER_MS = 10;
const MAX_TOGETHER = 200;
const BACKOFF = { firstMs: 50 } as const;
const MAX_DETAIL_CHARACTERS = 500;

/** A claimed delivery, and what is to be recorded of it. */
export interface ReportedDelivery {
  readonly delivery: ClaimedDelivery;
  readonly report: DeliveryReport;
}

export interface ReportBatchOptions {
  readonly queue: Pick<DeliveryQueue, 'report'>;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Called after outcomes are durable, with the health of the lanes whose failure streak changed. */
  readonly onRecorded: (
    reported: readonly ReportedDelivery[],
    health: ReadonlyMap<string, WebhookHealth>,
  ) => void;
  /** Called with a fault of the program, after which nothing more is recorded. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * Records outcomes in groups: those of two milliseconds, or of ten while there are many. While the store is unavailable
 * they are kept and retried; there are never more of them than claimed deliveries, and nothing is claimed meanwhile. An
 * outcome that the store refuses is recorded separately, without the receiver's answer, and does not delay the others.
 */
export class ReportBatch {
  readonly #options: ReportBatchOptions;
  readonly #closing = new AbortController();
  #waiting: ReportedDelivery[] = [];
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  /** Of the last commit. */
  #recordedTogether = 0;

  constructor(options: ReportBatchOptions) {
    this.#options = options;
  }

  add(reported: ReportedDelivery): void {
    this.#waiting.push(reported);
    if (this.#flushing === undefined) this.#flushSoon();
  }

  /** Records the rest with one try: the attempts of outcomes that can't be stored now are repeated. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer?.();
    await this.#flushing;
    const { log } = this.#options;
    const waiting = this.#waiting;
    try {
      for (let from = 0; from < waiting.length; from += MAX_TOGETHER) {
        await this.#record(waiting.slice(from, from + MAX_TOGETHER));
      }
    } catch (error) {
      const fields = { reason: reasonOf(error), outcomes: waiting.length };
      log.warn(fields, 'outcomes of attempts were not recorded before the end: these attempts are repeated');
    }
  }

  get #areMany(): boolean {
    return this.#recordedTogether >= MANY;
  }

  #flushSoon(): void {
    const delayMs = this.#areMany ? MANY_TOGETHER_MS : TOGETHER_MS;
    if (this.#cancelTimer !== undefined || this.#closing.signal.aborted) return;
    this.#cancelTimer = this.#options.scheduler.setTimer(delayMs, () => {
      this.#cancelTimer = undefined;
      this.#flushing = this.#flush().catch((error: unknown) => {
        this.#closing.abort();
        this.#options.onFailed(error);
      });
    });
  }

  async #flush(): Promise<void> {
    const { log, scheduler } = this.#options;
    const { signal } = this.#closing;
    const sleep = (ms: number) => sleepBy(scheduler, ms, signal);
    try {
      do {
        const some = this.#waiting.slice(0, MAX_TOGETHER);
        const fields = { outcomes: some.length };
        const retry = { log, signal, sleep, component: 'record of outcomes', backoff: BACKOFF, fields };
        await retryWhileUnavailable(async () => {
          await this.#record(some);
          this.#waiting = this.#waiting.slice(some.length);
        }, retry);
        this.#recordedTogether = some.length;
      } while (this.#waiting.length >= (this.#areMany ? MAX_TOGETHER : 1) && !signal.aborted);
    } finally {
      this.#flushing = undefined; // at once: outcomes added from here on need a timer
    }
    if (this.#waiting.length > 0) this.#flushSoon();
  }

  async #record(reported: readonly ReportedDelivery[]): Promise<void> {
    const failed = await isolateFailures(reported, (some) => this.#report(some));
    for (const { item, error } of failed) {
      const { id } = item.report;
      this.#options.log.error(
        { err: error, delivery: id },
        'an outcome can not be stored: it is recorded without the receiver’s answer',
      );
      await this.#report([inShort(item, reasonOf(error))]); // if this is refused too, it is a fault of the program
    }
  }

  async #report(reported: readonly ReportedDelivery[]): Promise<void> {
    const { queue, onRecorded } = this.#options;
    const health = await queue.report(reported.map(({ report }) => report));
    onRecorded(reported, health);
  }
}

/** The same report without what the receiver said, the only part of it that we did not write ourselves. */
function inShort({ delivery, report }: ReportedDelivery, reason: string): ReportedDelivery {
  if (!('attempt' in report) || report.attempt === null) return { delivery, report };
  const short = withoutWords(report.attempt.outcome);
  const detail = `not stored: ${reason}`.slice(0, MAX_DETAIL_CHARACTERS);
  const attempt = { ...report.attempt, outcome: short.ok ? short : { ...short, detail } };
  return { delivery, report: { ...report, attempt } };
}

function sleepBy(scheduler: Scheduler, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = scheduler.setTimer(ms, end);
    signal.addEventListener('abort', end);
  });
}
