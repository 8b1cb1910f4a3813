import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** An attempt ends within a second: 500 ms for the look-up of the name, 500 ms for the exchange. */
const ATTEMPT_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1];

/** What the webhooks' thread has counted since its last report. */
export interface AttemptReport {
  readonly attempts: readonly {
    readonly outcome: 'delivered' | 'failed';
    /** The kind of the failure; empty for a delivered one. */
    readonly kind: string;
    readonly count: number;
  }[];
  readonly durationsSeconds: Float64Array;
  /** First attempts of redeliveries. */
  readonly redeliveries: number;
  /** At this moment, not since the last report. */
  readonly inFlight: number;
}

export interface DeliveryMetrics {
  add(report: AttemptReport): void;
}

/** What this process does as a sender. The work is done in another thread, which reports every second; `history` gets it too. */
export function deliveryMetrics(registry: Registry, history: DeliveryMetrics): DeliveryMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: 'fuel_delivery_attempts_total',
    help: 'Attempts of deliveries that ended, by outcome (delivered, failed) and kind of failure.',
    labelNames: ['outcome', 'kind'],
    registers,
  });
  const durations = new Histogram({
    name: 'fuel_delivery_attempt_duration_seconds',
    help: 'Time of an attempt, from the name’s look-up to the answer.',
    buckets: ATTEMPT_BUCKETS_SECONDS,
    registers,
  });
  const redeliveries = new Counter({
    name: 'fuel_redeliveries_total',
    help: 'Redeliveries whose first attempt was made.',
    registers,
  });
  const inFlight = new Gauge({
    name: 'fuel_deliveries_in_flight',
    help: 'Attempts under way in this process.',
    registers,
  });
  attempts.inc({ outcome: 'delivered', kind: '' }, 0);
  return {
    add(report) {
      for (const { outcome, kind, count } of report.attempts) attempts.inc({ outcome, kind }, count);
      for (const seconds of report.durationsSeconds) durations.observe(seconds);
      redeliveries.inc(report.redeliveries);
      inFlight.set(report.inFlight);
      history.add(report);
    },
  };
}
