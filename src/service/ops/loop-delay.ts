import { Gauge, type Registry } from 'prom-client';
import { world } from '../../base/world.ts';
import { machine } from './machine.ts';

/** Each sample wakes the thread. A delay shorter than this may pass between two of them. */
const RESOLUTION_MS = 200;
const READ_EVERY_MS = 1_000;
/** Longer than between two scrapes, so that none misses a delay. */
const READINGS_KEPT = 60;

export function loopDelayMetric(registry: Registry): Gauge<'thread'> {
  return new Gauge({
    name: 'fuel_event_loop_delay_seconds',
    help: 'The longest delay of the event loop in the last minute, by thread (main, projector, webhooks, api-2 and so on).',
    labelNames: ['thread'],
    registers: [registry],
  });
}

/** Sets the longest delay of this thread's event loop in the last minute, until it is stopped. Keeps no thread alive. */
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
