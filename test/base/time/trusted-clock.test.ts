import { expect, test } from 'vitest';
import { TrustedClock, trustedTime } from '../../../src/base/time/trusted-clock.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { newestEventMs } from '../../../src/event-store/reads.ts';
import { memoryCoordination } from '../../support/engines/coordination.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { memoryLog } from '../../support/service/api.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Stores with processes, each of which has a separate clock that is this far ahead. */
function stores() {
  const right = new FakeClock();
  const shared = new MemoryStores();
  const log = new MemoryLog();
  const lines: Record<string, unknown>[] = [];
  const start = (clock = { aheadMs: 0 }) =>
    new TrustedClock({
      clock: { now: () => right.now() + clock.aheadMs },
      elapsed: { now: () => right.now() % (1_000 * DAY_MS) },
      coordination: memoryCoordination(right, shared),
      newestEventMs: () => newestEventMs(openMemoryEventStore(log, right)),
      log: memoryLog(lines),
    });
  const record = async (clock: { now(): number } = right): Promise<void> => {
    const event = newEvent({ type: 'IntegrationEnabled', data: { account_id: 7 } }, AUTHOR, clock.now());
    await openMemoryEventStore(log, clock).append([
      { stream: 'account-7', expected: 'any', events: [event] },
    ]);
  };
  const known = () => trustedTime(memoryCoordination(right, shared));
  return { right, start, record, known, lines };
}

const AUTHOR = { actor: 'test', command: 'test' };

test('a clock is trusted in an empty store, and near the newest event', async () => {
  const { right, start, record, known, lines } = stores();
  expect(await start().look()).toBe(true);
  const other = stores();
  await other.record();
  other.right.advance(DAY_MS);
  expect(await other.start().look()).toBe(true);
  await record();
  expect([await known(), lines]).toEqual([right.now(), []]);
});

test('a clock that is 100 days ahead at the start is not trusted, and the log says so', async () => {
  const { right, start, record, known, lines } = stores();
  await record();
  const trusted = start({ aheadMs: 100 * DAY_MS });
  expect(await trusted.look()).toBe(false);
  expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining('nothing is removed') }]);
  expect(await known()).toBeUndefined();
  right.advance(HOUR_MS);
  expect(trusted.now()).toBe(right.now()); // for judging the age of things
});

test('a clock is compared with the last look of any process, whatever was recorded since by a wrong clock', async () => {
  const { right, start, record } = stores();
  const wrong = { aheadMs: 0 };
  const first = start(wrong);
  expect(await first.look()).toBe(true);
  right.advance(HOUR_MS);
  wrong.aheadMs = 100 * DAY_MS;
  await record({ now: () => right.now() + wrong.aheadMs });
  expect(first.now()).toBe(right.now()); // before it looks again
  expect(await first.look()).toBe(false);
  expect(await start(wrong).look()).toBe(false);
  wrong.aheadMs = 0;
  expect(await first.look()).toBe(true);
});

test('a clock that stays far ahead is trusted after a day, unless a process with another one has looked since', async () => {
  const { right, start } = stores();
  await start().look();
  right.advance(40 * DAY_MS); // the service did not run
  const trusted = start();
  for (let hour = 0; hour < 24; hour++) {
    expect(await trusted.look()).toBe(false);
    right.advance(HOUR_MS);
  }
  expect(await trusted.look()).toBe(true);
  const [wrong, other] = [start({ aheadMs: 100 * DAY_MS }), start()];
  for (let hour = 0; hour < 72; hour++) {
    expect([await wrong.look(), await other.look()]).toEqual([false, true]);
    right.advance(HOUR_MS);
  }
});

test('a first look by a clock that is ahead leaves no trust for the next one', async () => {
  const { right, start, known } = stores();
  const clock = { aheadMs: 100 * DAY_MS };
  const trusted = start(clock);
  await trusted.look();
  clock.aheadMs = 0;
  expect(await trusted.look()).toBe(true);
  expect(await known()).toBe(right.now());
  clock.aheadMs = 100 * DAY_MS;
  expect(await trusted.look()).toBe(false);
});
