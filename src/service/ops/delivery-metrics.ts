import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { DeliveryMetrics } from '../../push/dispatch/attempt.ts';

/** An attempt ends within a second: 500 ms for looking up the name and 500 ms for the exchange. */
const ATTEMPT_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1];
export const ATTEMPTS = 'fuel_delivery_attempts_total';
export const ATTEMPT_DURATIONS = 'fuel_delivery_attempt_duration_seconds';

interface CountedDeliveries extends DeliveryMetrics {
  /** Sets when the certificate ends that receivers are shown, in milliseconds since the epoch. */
  clientCertificateEnds(atMs: number): void;
}

/** The metrics of a thread that sends deliveries. */
export function deliveryMetrics(registry: Registry): CountedDeliveries {
  const registers = [registry];
  const attempts = new Counter({
    name: ATTEMPTS,
    help: 'Attempts of deliveries that ended, by outcome (delivered, failed) and kind of failure (docs/errors.md). The kind secret was not sent, because it could not be signed.',
    labelNames: ['outcome', 'kind'],
    registers,
  });
  const durations = new Histogram({
    name: ATTEMPT_DURATIONS,
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
  const waiting = new Gauge({
    name: 'fuel_deliveries_waiting_lanes',
    help: 'Webhooks whose due deliveries wait for the receiver’s pace or its Retry-After. Receivers are slow if it stays above 0 for hours.',
    registers,
  });
  const proxyFailures = new Counter({
    name: 'fuel_webhook_proxy_failures_total',
    help: 'Attempts that were not made because the proxy of FUEL_WEBHOOK_PROXY failed or refused the receiver.',
    labelNames: ['proxy'],
    registers,
  });
  const certificateEnd = new Gauge({
    name: 'fuel_webhook_certificate_end_timestamp_seconds',
    help: 'When the certificate ends that receivers are shown; 0 if there is none.',
    aggregator: 'max', // only one thread has a sender
    registers,
  });
  attempts.inc({ outcome: 'delivered', kind: '' }, 0);
  for (const kind of ['secret', 'fault']) attempts.inc({ outcome: 'failed', kind }, 0); // shown before the first one
  return {
    clientCertificateEnds: (atMs) => certificateEnd.set(atMs / 1000),
    waitingLanes: (count) => waiting.set(count),
    unsigned: () => attempts.inc({ outcome: 'failed', kind: 'secret' }),
    attempting: () => inFlight.inc(),
    attempted({ cycle, attemptNumber }, { isWithheld, outcome, durationMs }, { proxy = '' }) {
      inFlight.dec();
      if (!outcome.ok && outcome.kind === 'proxy') proxyFailures.inc({ proxy });
      if (isWithheld) return;
      attempts.inc(
        outcome.ok ? { outcome: 'delivered', kind: '' } : { outcome: 'failed', kind: outcome.kind },
      );
      durations.observe(durationMs / 1000);
      if (cycle > 1 && attemptNumber === 1) redeliveries.inc();
    },
  };
}
