import { expect, onTestFinished, test } from 'vitest';
import { deliveryId } from '../../src/delivery/delivery-id.ts';
import { purgeEnded } from '../../src/delivery/retention.ts';
import { PREFIX } from '../support/account-samples.ts';
import { settle } from '../support/fake-scheduler.ts';
import { failedWith, OK, PushMachine, READY } from '../support/push.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DAY_MS = 86_400_000;

test('what ended longer ago than the retention is removed, in batches, and what is pending never', async () => {
  const m = new PushMachine(temporaryFolder());
  onTestFinished(() => m.close());
  await m.account(...READY);
  m.start();
  await settle();
  const old = Array.from({ length: 130 }, (_, index) => index + 1);
  m.sender.answer = ({ id }) => ({
    outcome: id === deliveryId(PREFIX, 500) ? failedWith(503) : OK,
    afterMs: 5,
  });
  await m.fan(...(await Promise.all(old.map((id) => m.confirm(id)))), await m.confirm(500));
  await m.scheduler.advance(1_000);
  m.kill(); // so that 500 stays pending
  await m.scheduler.jump(10 * DAY_MS);
  m.sender.answer = () => ({ outcome: OK, afterMs: 5 });
  const purge = (retentionMs: number) =>
    purgeEnded({ queue: m.queue, clock: m.scheduler, retentionMs, signal: new AbortController().signal });
  expect(await purge(11 * DAY_MS)).toBe(0);
  expect(await purge(9 * DAY_MS)).toBe(130);
  expect(await m.queue.countByState({})).toMatchObject({ pending: 1, delivered: 0 });
});
