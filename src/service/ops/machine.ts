import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics } from 'prom-client';

/** What measures this process and its machine; the simulation replaces it, as it does `world`. */
export const machine = { collectDefaultMetrics, monitorEventLoopDelay };
