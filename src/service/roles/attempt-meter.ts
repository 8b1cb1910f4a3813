import type { ClaimedDelivery } from '../../push/queue/delivery-queue.ts';
import type { Sender, SendResult } from '../../push/sender/sender-port.ts';
import type { AttemptReport } from '../ops/delivery-metrics.ts';

/** Counts the attempts of the webhooks' thread, which the main thread shows. One attempt costs two additions. */
export class AttemptMeter {
  readonly #counts = new Map<string, { outcome: 'delivered' | 'failed'; kind: string; count: number }>();
  #durations: number[] = [];
  #redeliveries = 0;
  #inFlight = 0;

  /** The same sender, whose attempts are counted. */
  over(sender: Sender): Sender {
    return {
      close: () => sender.close(),
      send: async (request) => {
        this.#inFlight++;
        try {
          const result = await sender.send(request);
          this.#ended(result);
          return result;
        } finally {
          this.#inFlight--;
        }
      },
    };
  }

  /** To be called with each delivery that is about to be attempted. */
  attempting({ cycle, attemptNumber }: Pick<ClaimedDelivery, 'cycle' | 'attemptNumber'>): void {
    if (cycle > 1 && attemptNumber === 1) this.#redeliveries++;
  }

  /** The signed request; counts a failed attempt of the kind `secret` where `sign` throws. */
  signed<T>(sign: () => T): T {
    try {
      return sign();
    } catch (error) {
      this.#count('failed', 'secret');
      throw error;
    }
  }

  /** What was counted since the last call. */
  take(): AttemptReport {
    const report = {
      attempts: [...this.#counts.values()],
      durationsSeconds: Float64Array.from(this.#durations),
      redeliveries: this.#redeliveries,
      inFlight: this.#inFlight,
    };
    this.#counts.clear();
    this.#durations = [];
    this.#redeliveries = 0;
    return report;
  }

  #ended({ outcome, durationMs }: SendResult): void {
    if (outcome.ok) this.#count('delivered', '');
    else this.#count('failed', outcome.kind);
    this.#durations.push(durationMs / 1000);
  }

  #count(outcome: 'delivered' | 'failed', kind: string): void {
    const counted = this.#counts.get(kind);
    if (counted === undefined) this.#counts.set(kind, { outcome, kind, count: 1 });
    else counted.count++;
  }
}
