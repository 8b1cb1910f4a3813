import type { Schedule } from '../../../src/operator/serve/nightly.ts';
import type { Timeline, Timer } from '../core/timeline.ts';

const DAY_MS = 86_400_000;

/** Replaces cron for expressions with a minute and an hour. */
export function everyDay(timeline: Timeline): Schedule {
  return (expression, work) => {
    const [minute = 0, hour = 0] = expression.split(' ').map(Number);
    const ofDayMs = (hour * 60 + minute) * 60_000;
    let timer: Timer;
    const plan = (): void => {
      const untilMs = (ofDayMs - (timeline.nowMs % DAY_MS) + DAY_MS) % DAY_MS;
      timer = timeline.set(untilMs || DAY_MS, () => {
        plan();
        void work();
      });
    };
    plan();
    return { destroy: () => timeline.clear(timer) };
  };
}
