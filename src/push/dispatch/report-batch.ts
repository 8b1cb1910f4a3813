import type { AlarmClock, Clock } from '../../base/clock.ts';
import { reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { DeliveryReport, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { withoutWords } from '../queue/next-state.ts';

/** A commit waits this long for further outcomes. Without that it would have half as many, and write half as much again. */
const GATHERED_MS = 10;
const MAX_TOGETHER = 200;
/** Outcomes that have waited this long are late. Their deliveries may be due again before they are recorded. */
const LATE_MS = 1_000;
const BACKOFF = { firstMs: 50 } as const;
const MAX_DETAIL_CHARACTERS = 500;

interface ReportBatchOptions {
  readonly queue: Pick<DeliveryQueue, 'report'>;
  readonly clock: AlarmClock;
  readonly steady: Clock;
  readonly log: Log;
}

interface Waiting extends PromiseWithResolvers<WebhookHealth | undefined> {
  readonly sinceMs: number;
  report: DeliveryReport;
}

/**
 * Records together the outcomes of ten milliseconds. While the store is unavailable or slow they are kept and retried;
 * nothing is claimed meanwhile (`isBehind`), so this process attempts no delivery whose outcome it has. An outcome that the store refuses is recorded
 * separately, without the receiver's answer, and does not delay the others.
 */
export class ReportBatch {
  readonly #options: ReportBatchOptions;
  readonly #closing = new AbortController();
  /** The outcomes that are not recorded yet, in order. */
  readonly #waiting = new Set<Waiting>();
  #flushing: Promise<void> | undefined;
  #endPause = (): void => undefined;

  constructor(options: ReportBatchOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the outcome is durable, or was given up at the close, with the health of its lane if the commit has
   * changed it. Rejects with a fault of the program, after which nothing more is recorded.
   */
  record(report: DeliveryReport): Promise<WebhookHealth | undefined> {
    const sinceMs = this.#options.steady.now();
    const waiting = { report, sinceMs, ...Promise.withResolvers<WebhookHealth | undefined>() };
    this.#waiting.add(waiting);
    if (!this.#closing.signal.aborted) this.#flushing ??= this.#flush();
    return waiting.promise;
  }

  /** True while an outcome has been waiting for so long that its delivery may be due again. */
  get isBehind(): boolean {
    const [oldest] = this.#waiting;
    return oldest !== undefined && this.#options.steady.now() - oldest.sinceMs > LATE_MS;
  }

  /** Tries once to record the rest. Attempts whose outcomes can't be recorded are repeated later. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#endPause();
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

  async #flush(): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#closing;
    const sleep = (ms: number) => this.#pause(ms);
    try {
      while (this.#waiting.size > 0 && !signal.aborted) {
        if (this.#waiting.size < MAX_TOGETHER) await this.#pause(GATHERED_MS);
        const fields = { outcomes: Math.min(this.#waiting.size, MAX_TOGETHER) };
        const retry = { log, signal, sleep, component: 'record of outcomes', backoff: BACKOFF, fields };
        await retryWhileUnavailable(() => this.#record(), retry);
      }
    } catch (error) {
      this.#closing.abort();
      for (const { reject } of this.#waiting) reject(error);
    }
    this.#flushing = undefined;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.setTimer(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Records the next outcomes. If it rejects, some of them may be recorded, and the others still wait. */
  async #record(): Promise<void> {
    const next = [...this.#waiting].slice(0, MAX_TOGETHER);
    for (const { item, error } of await isolateFailures(next, (some) => this.#store(some))) {
      const fields = { err: error, delivery: item.report.id };
      this.#options.log.error(
        fields,
        'an outcome cannot be stored: it is recorded without the receiver’s answer',
      );
      item.report = inShort(item.report, reasonOf(error));
      await this.#store([item]); // refused too: a fault of the program
    }
  }

  async #store(outcomes: readonly Waiting[]): Promise<void> {
    const health = await this.#options.queue.report(outcomes.map(({ report }) => report));
    for (const each of outcomes) {
      this.#waiting.delete(each);
      each.resolve(health.get(each.report.prefix));
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
