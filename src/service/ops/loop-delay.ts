import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** Further API threads are `api-2` and so on; the main thread is the first. */
export type ThreadName = 'main' | 'projector' | 'webhooks' | `api-${number}`;

/** Each sample wakes the thread. A delay shorter than this may pass between two of them. */
const RESOLUTION_MS = 200;
const REPORT_EVERY_MS = 1_000;
/** Longer than between two scrapes, so that none misses a delay. */
const REPORTS_KEPT = 60;

/** Reports the longest delay of this thread's event loop in each second, until it is stopped. Keeps no thread alive. */
export function watchLoopDelay(report: (longestMs: number) => void): { stop(): void } {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const timer = setInterval(() => {
    report(histogram.count === 0 ? 0 : Math.max(0, histogram.max / 1e6 - RESOLUTION_MS));
    histogram.reset();
  }, REPORT_EVERY_MS).unref();
  return {
    stop() {
      clearInterval(timer);
      histogram.disable();
    },
  };
}

/** The gauge of what the threads of this process report. Returns what takes their reports. */
export function loopDelayMetric(registry: Registry): (thread: ThreadName, longestMs: number) => void {
  const reported = new Map<ThreadName, number[]>();
  new Gauge({
    name: 'fuel_event_loop_delay_seconds',
    help: 'The longest delay of the event loop in the last minute, by thread (main, projector, webhooks, api-2 and so on).',
    labelNames: ['thread'],
    registers: [registry],
    collect() {
      for (const [thread, all] of reported) {
        this.set({ thread }, all.reduce((a, b) => Math.max(a, b), 0) / 1000);
      }
    },
  });
  return (thread, longestMs) => {
    const all = reported.get(thread) ?? [];
    all.push(longestMs);
    if (all.length > REPORTS_KEPT) all.shift();
    reported.set(thread, all);
  };
}
