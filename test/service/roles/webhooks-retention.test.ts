import { afterEach, describe, expect, test, vi } from 'vitest';
import { claimFrom, claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { machine } from '../../support/service/webhooks-machine.ts';
import { until } from '../../support/waiting.ts';

const DAY_MS = 86_400_000;

afterEach(() => void vi.useRealTimers());

/** Sets the system clock to this time. */
function itIs(atMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: atMs, shouldAdvanceTime: true });
}

describe('the retention of the delivery log', () => {
  test('is how long after its recording an event is still fanned out', async () => {
    const m = await machine();
    const nowMs = Date.now();
    itIs(nowMs - 20 * DAY_MS);
    await m.provision();
    itIs(nowMs - 10.1 * DAY_MS);
    await m.record(501);
    itIs(nowMs - 9.9 * DAY_MS);
    await m.record(502);
    itIs(nowMs - 0.5 * DAY_MS);
    await m.record(503); // the clock counts for at most a day after the newest event
    itIs(nowMs);
    m.start();
    await m.settled('delivered', 2);
    expect((await m.logged()).map(({ transactionId }) => transactionId).sort()).toEqual([502, 503]);
  });

  test('is not judged by a clock that is far ahead of the newest event', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    itIs(Date.now() + 100 * DAY_MS);
    m.start();
    await m.settled('delivered');
    expect((await m.logged()).map(({ transactionId }) => transactionId)).toEqual([501]);
  });

  test('is how long an ended delivery is kept, which is judged each hour', async () => {
    const m = await machine();
    await m.provision();
    // Removal is at 23 minutes past each hour. This is a moment before it.
    const nowMs = new Date().setMinutes(22, 59, 0);
    const queue = m.engines.queue();
    for (const [n, endedAtMs] of [
      [501, nowMs - 10.1 * DAY_MS],
      [502, nowMs - 9.9 * DAY_MS],
    ] as const) {
      await queue.enqueue([newDelivery(n, { createdAtMs: endedAtMs })]);
      const [claim] = await claimFrom(queue, claimOptions(endedAtMs));
      if (claim !== undefined) await queue.report([delivered(claim, endedAtMs)]);
    }
    expect(await m.logged()).toHaveLength(2);
    itIs(nowMs);
    await m.start().connected;
    await until(async () => (await m.logged()).length < 2);
    expect((await m.logged()).map(({ transactionId }) => transactionId)).toEqual([502]);
  });
});
