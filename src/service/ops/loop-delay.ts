import { Gauge, type Registry } from 'prom-client';
import { world } from '../../base/world.ts';
import { machine } from './machine.ts';

/** The time between two samples. Each one wakes the thread, and a shorter delay may go unnoticed. */
const RESOLUTION_MS = 200;
const READ_EVERY_MS = 1_000;
/** The number of readings kept. They span more than the time between two scrapes, so that none misses a delay. */
const READINGS_KEPT = 60;

export function loopDelayMetric(registry: Registry): Gauge<'thread'> {
  return new Gauge({
    name: 'fuel_event_loop_delay_seconds',
    help: 'The longest delay of the event loop in the last minute, by thread (main, projector, webhooks). It is sampled five times a second, so a delay below 0.2 may be missed.',
    labelNames: ['thread'],
    registers: [registry],
  });
}

/**
 * Sets the gauge to the longest delay of this thread's event loop in the last minute. Does not keep the thread alive.
 */
export function watchLoopDelay(gauge: Gauge<'thread'>, thread: string): { stop(): void } {
  const histogram = machine.monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const longestMs: number[] = [];
  const timer = world
    .setInterval(() => {
      longestMs.push(histogram.count === 0 ? 0 : Math.max(0, histogram.max / 1e6 - RESOLUTION_MS));
      histogram.reset();
      if (longestMs.length > READINGS_KEPT) longestMs.shift();
      gauge.set({ thread }, longestMs.reduce((a, b) => Math.max(a, b), 0) / 1000);
    }, READ_EVERY_MS)
    .unref();
  return {
    stop() {
      world.clearInterval(timer);
      histogram.disable();
    },
  };
}
