import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ClaimedDelivery } from '../../push/queue/delivery.ts';
import type { Sender } from '../../push/sender/sender.ts';
import { ReceiversSeen } from './receivers-seen.ts';

/** An attempt ends within a second: 500 ms for the look-up of the name, 500 ms for the exchange. */
const ATTEMPT_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1];

export const ATTEMPTS = 'fuel_delivery_attempts_total';
export const ATTEMPT_DURATIONS = 'fuel_delivery_attempt_duration_seconds';

export interface DeliveryMetrics {
  /** The same sender, whose attempts are counted. */
  over(sender: Sender): Sender;
  /** To be called with each delivery that is about to be attempted. */
  attempting(delivery: Pick<ClaimedDelivery, 'cycle' | 'attemptNumber'>): void;
  /** The signed request; counts a failed attempt of the kind `secret` where `sign` throws. */
  signed<T>(sign: () => T): T;
}

/** What a thread does as a sender. */
export function deliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: ATTEMPTS,
    help: 'Attempts of deliveries that ended, by outcome (delivered, failed) and kind of failure.',
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
  const receivers = new ReceiversSeen(registry);
  attempts.inc({ outcome: 'delivered', kind: '' }, 0);
  for (const kind of ['secret', 'fault']) attempts.inc({ outcome: 'failed', kind }, 0); // there before the first
  return {
    over: (sender) => ({
      close: () => sender.close(),
      async send(request) {
        inFlight.inc();
        try {
          const result = await sender.send(request);
          if (result.outcome.ok) attempts.inc({ outcome: 'delivered', kind: '' });
          else attempts.inc({ outcome: 'failed', kind: result.outcome.kind });
          receivers.saw(URL.parse(request.url)?.host ?? '', result.outcome.ok);
          durations.observe(result.durationMs / 1000);
          return result;
        } finally {
          inFlight.dec();
        }
      },
    }),
    attempting({ cycle, attemptNumber }) {
      if (cycle > 1 && attemptNumber === 1) redeliveries.inc();
    },
    signed(sign) {
      try {
        return sign();
      } catch (error) {
        attempts.inc({ outcome: 'failed', kind: 'secret' });
        throw error;
      }
    },
  };
}
