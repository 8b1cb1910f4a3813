import type { Registry } from 'prom-client';
import { apiMetrics } from '../../pull/api-metrics.ts';
import { deliveryMetrics } from './delivery-metrics.ts';
import { loopDelayMetric } from './loop-delay.ts';

/** The metrics of one thread, for another. */
export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What every thread of a process counts, the main one too; the process shows the sums. */
export type WorkMetrics = ReturnType<typeof workMetrics>;

export function workMetrics(registry: Registry) {
  return {
    ...apiMetrics(registry),
    deliveries: deliveryMetrics(registry),
    loopDelay: loopDelayMetric(registry),
  };
}
