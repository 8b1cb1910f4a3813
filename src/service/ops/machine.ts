import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics } from 'prom-client';

/** Measurements of this process and its machine. The simulation replaces them, like `world`. */
export const machine = { collectDefaultMetrics, monitorEventLoopDelay };
