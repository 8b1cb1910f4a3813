import { setTimeout as sleep } from 'node:timers/promises';
import { AdaptiveLimit } from '../../push/pace/adaptive-limit.ts';
import type { SentWebhook } from './send-mock.ts';

const MAX_UNDER_WAY = 32; // as for a webhook of the service

/** Does the jobs at the service's pace: as many at a time as the receiver answers in time. Returns what they sent, in order. */
export async function sendPaced(jobs: readonly (() => Promise<SentWebhook[]>)[]): Promise<SentWebhook[]> {
  const limit = new AdaptiveLimit(MAX_UNDER_WAY);
  const sent: SentWebhook[][] = [];
  const underWay = new Set<Promise<void>>();
  for (const [place, job] of jobs.entries()) {
    let startedAtMs = performance.now();
    for (; limit.room(underWay.size, startedAtMs) <= 0; startedAtMs = performance.now())
      await Promise.race([...underWay, sleep(Math.min(limit.nextAtMs - startedAtMs, 100))]);
    limit.started(underWay.size + 1, startedAtMs);
    const running: Promise<void> = job().then((done) => {
      underWay.delete(running);
      sent[place] = done;
      const { status = null, ms = 0 } = done.at(-1) ?? {};
      const ended = { startedAtMs, nowMs: performance.now() };
      if (status === 429) limit.refused(ended);
      else if (status === null) limit.lost(ended);
      else limit.answered(ms, ended);
    });
    underWay.add(running);
  }
  await Promise.all(underWay);
  return sent.flat();
}
