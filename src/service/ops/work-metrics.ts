import type { Registry } from 'prom-client';
import { deliveryMetrics } from './delivery-metrics.ts';
import { loopDelayMetric } from './loop-delay.ts';

/** The metrics of one thread in a form that can be sent to another. */
export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** The metrics that every thread of a process counts. The process shows their sums. */
export type WorkMetrics = ReturnType<typeof workMetrics>;

export function workMetrics(registry: Registry) {
  return {
    deliveries: deliveryMetrics(registry),
    loopDelay: loopDelayMetric(registry),
  };
}
