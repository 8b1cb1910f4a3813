import type { Scheduler } from '../../base/clock.ts';
import { reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { DeliveryReport, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { withoutWords } from '../queue/next-state.ts';

const TOGETHER_MS = 2;
/** After a commit of this many outcomes, more than one webhook can have, the next commit waits for more of them. */
const MANY = 48;
const MANY_TOGETHER_MS = 10;
const MAX_TOGETHER = 200;
const BACKOFF = { firstMs: 50 } as const;
const MAX_DETAIL_CHARACTERS = 500;

interface ReportBatchOptions {
  readonly queue: Pick<DeliveryQueue, 'report'>;
  readonly scheduler: Scheduler;
  readonly log: Log;
}

interface Waiting extends PromiseWithResolvers<WebhookHealth | undefined> {
  readonly report: DeliveryReport;
}

/**
 * Records together the outcomes of two milliseconds, or of ten while there are many. While the store is unavailable they
 * are kept and retried; nothing is claimed meanwhile, so there are never more of them than claimed deliveries. An outcome
 * that the store refuses is recorded separately, without the receiver's answer, and does not delay the others.
 */
export class ReportBatch {
  readonly #options: ReportBatchOptions;
  readonly #closing = new AbortController();
  /** The outcomes that are not recorded yet, in order. */
  readonly #waiting = new Set<Waiting>();
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  /** The number of outcomes in the last commit. */
  #recordedTogether = 0;

  constructor(options: ReportBatchOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the outcome is durable, or was given up at the close, with the health of its lane if the commit has
   * changed it. Rejects with a fault of the program, after which nothing more is recorded.
   */
  record(report: DeliveryReport): Promise<WebhookHealth | undefined> {
    const waiting = { report, ...Promise.withResolvers<WebhookHealth | undefined>() };
    this.#waiting.add(waiting);
    if (this.#flushing === undefined) this.#flushSoon();
    return waiting.promise;
  }

  /** Tries once to record the rest. Attempts whose outcomes can't be recorded are repeated later. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer?.();
    await this.#flushing;
    const { log } = this.#options;
    try {
      while (this.#waiting.size > 0) await this.#record();
    } catch (error) {
      const fields = { reason: reasonOf(error), outcomes: this.#waiting.size };
      log.warn(fields, 'outcomes of attempts were not recorded before the end: these attempts are repeated');
      for (const { resolve } of this.#waiting) resolve(undefined);
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
        for (const { reject } of this.#waiting) reject(error);
      });
    });
  }

  async #flush(): Promise<void> {
    const { log, scheduler } = this.#options;
    const { signal } = this.#closing;
    const sleep = (ms: number) => sleepBy(scheduler, ms, signal);
    try {
      do {
        const outcomes = Math.min(this.#waiting.size, MAX_TOGETHER);
        const retry = { log, signal, sleep, component: 'record of outcomes', backoff: BACKOFF };
        await retryWhileUnavailable(() => this.#record(), { ...retry, fields: { outcomes } });
        this.#recordedTogether = outcomes;
      } while (this.#waiting.size >= (this.#areMany ? MAX_TOGETHER : 1) && !signal.aborted);
    } finally {
      this.#flushing = undefined; // first, since outcomes that are added from here on need a timer
    }
    if (this.#waiting.size > 0) this.#flushSoon();
  }

  /** Records the next outcomes. If it rejects, some of them may be recorded, and the others still wait. */
  async #record(): Promise<void> {
    const { queue, log } = this.#options;
    const store = async (some: readonly Waiting[], reports = some.map(({ report }) => report)) => {
      const health = await queue.report(reports);
      for (const each of some) {
        this.#waiting.delete(each);
        each.resolve(health.get(each.report.prefix));
      }
    };
    const next = [...this.#waiting].slice(0, MAX_TOGETHER);
    for (const { item, error } of await isolateFailures(next, store)) {
      const fields = { err: error, delivery: item.report.id };
      log.error(fields, 'an outcome cannot be stored: it is recorded without the receiver’s answer');
      await store([item], [inShort(item.report, reasonOf(error))]); // refused too: a fault of the program
    }
  }
}

/** The report without the receiver's words, which are the only part of it that this program did not write. */
function inShort(report: DeliveryReport, reason: string): DeliveryReport {
  if (!('attempt' in report) || report.attempt === null) return report;
  const short = withoutWords(report.attempt.outcome);
  const detail = `not stored: ${reason}`.slice(0, MAX_DETAIL_CHARACTERS);
  const attempt = { ...report.attempt, outcome: short.ok ? short : { ...short, detail } };
  return { ...report, attempt };
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
