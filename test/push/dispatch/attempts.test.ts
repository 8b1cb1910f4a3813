import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { Attempts } from '../../../src/push/dispatch/attempts.ts';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { areCollected } from '../../support/collected.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { FakeScheduler, settle } from '../../support/deliveries/fake-scheduler.ts';
import { OK, READY } from '../../support/deliveries/push.ts';

test('nothing is kept of an attempt that has ended', async () => {
  const directory = new Directory();
  for (const [revision, event] of READY.entries()) {
    const decoded = { ok: true, event, atMs: 0 } as const;
    directory.apply({ position: revision + 1, stream: 'account-7', revision, decoded });
  }
  let ended = 0;
  const attempts = new Attempts({
    terms: {
      sender: {
        send: async () => ({ outcome: OK, durationMs: 1, lateMs: 0 }),
        close: async () => undefined,
      },
      requestFor: () => ({ url: '', headers: {}, body: '' }),
      retryDelayMs: () => undefined,
    },
    directory,
    environment: 'staging',
    scheduler: new FakeScheduler(),
    log: pino({ enabled: false }),
    endedSince: () => undefined,
    onEnded: () => void ended++,
  });
  const started = Array.from({ length: 3 }, (_, n) => {
    const delivery = { ...newDelivery(n, { prefix: PREFIX }), cycle: 1, attemptNumber: 1, leaseToken: 'x' };
    attempts.start(delivery);
    return new WeakRef(delivery);
  });
  await settle();
  expect(ended).toBe(3);
  expect(await areCollected(started)).toBe(true);
  await attempts.whenIdle();
});
