import { setTimeout as sleep } from 'node:timers/promises';
import { RequestLimit } from '../../push/pace/request-limit.ts';
import type { SentWebhook } from './send-mock.ts';

/** The part of a refused number of requests that is used, as for a webhook of the service. */
const USED_PART = 0.8;

/** Does the jobs at the service's pace: as many at a time as the receiver answers in time. Returns what they sent, in order. */
export async function sendPaced(jobs: readonly (() => Promise<SentWebhook[]>)[]): Promise<SentWebhook[]> {
  const limit = new RequestLimit();
  const sent: SentWebhook[][] = [];
  const underWay = new Set<Promise<void>>();
  for (const [number, job] of jobs.entries()) {
    for (let nowMs = performance.now(); limit.room(0, nowMs) <= 0; nowMs = performance.now())
      await Promise.race([...underWay, sleep(Math.min(limit.nextAtMs - nowMs, 100))]);
    const place = limit.started(performance.now());
    const running: Promise<void> = job().then((done) => {
      underWay.delete(running);
      sent[number] = done;
      const { status = null, ms = 0 } = done.at(-1) ?? {};
      const nowMs = performance.now();
      if (status === 429) limit.lost(place, nowMs, USED_PART * place.at);
      else if (status === null) limit.lost(place, nowMs);
      else limit.answered(place, ms, { nowMs });
    });
    underWay.add(running);
  }
  await Promise.all(underWay);
  return sent.flat();
}
