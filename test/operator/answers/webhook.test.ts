import { describe, expect, test } from 'vitest';
import { readKeys } from '../../../src/accounts/rows/read-rows.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { laneAttempts, paceShown, readPace, webhookLine } from '../../../src/operator/answers/webhook.ts';
import type {
  ClaimedDelivery,
  DeliveryReport,
  LaneStreak,
  NewDelivery,
} from '../../../src/push/queue/delivery.ts';
import {
  PREFIX as KEY,
  keyIssued,
  onKey,
  opened,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import {
  answered,
  attemptOf,
  claimFrom,
  claimOf,
  claimOptions,
  delivered,
  newDelivery,
  retryAt,
  SUCCESS,
  TIMEOUT,
} from '../../support/deliveries/deliveries.ts';
import { queueInMemory } from '../../support/deliveries/open-queue.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const PREFIX = 'aaaaaaaaaa';

/** A lane with deliveries that were attempted, one after the other from 10 s on, and others that are due. */
async function lane(outcomes: readonly (readonly [ms: number, outcome: typeof SUCCESS])[], due = 0) {
  const clock = new FakeClock();
  const queue = queueInMemory(new MemoryStores(), clock);
  await queue.enqueue(outcomes.map((_, n) => newDelivery(n)));
  const claims = await claimFrom(queue, claimOptions(9_000));
  const reports = claims.map((claim, n): DeliveryReport => {
    const [durationMs, outcome] = outcomes[n] ?? [0, SUCCESS];
    const attempt = { ...attemptOf(claim, 10_000 + n, outcome), durationMs };
    return outcome.ok
      ? { kind: 'delivered', ...claimOf(claim), attempt }
      : { kind: 'retry', ...claimOf(claim), attempt, dueAtMs: 90_000 };
  });
  await queue.report(reports);
  await queue.enqueue(Array.from({ length: due }, (_, n) => newDelivery(100 + n)));
  return queue;
}

const NO_ROWS = { get: async () => [] };

describe('the pace of a webhook', () => {
  test('is unknown before the first attempt', async () => {
    const { pace, attempts } = await readPace(
      { queue: await lane([]), rows: NO_ROWS, nowMs: 20_000 },
      PREFIX,
    );
    expect(pace).toEqual({ under_way: 0, answer_ms: null, waiting: 0, asked_to_wait_until: null });
    expect(attempts).toEqual([]);
  });

  test('has the median time of all answered attempts, also of failures, and what is waiting', async () => {
    const queue = await lane(
      [
        [80.4, SUCCESS],
        [500, TIMEOUT],
        [20, SUCCESS],
        [300, answered(500)],
        [500, TIMEOUT],
      ],
      3,
    );
    await claimFrom(queue, claimOptions(19_000, { laneCapacity: () => 1 }));
    const { pace } = await readPace({ queue: queue, rows: NO_ROWS, nowMs: 20_000 }, PREFIX);
    expect(pace).toEqual({ under_way: 1, answer_ms: 80, waiting: 2, asked_to_wait_until: null });
  });

  test('says until when the receiver asked us to wait, while it lasts', async () => {
    const queue = await lane([
      [100, answered(429, '15')],
      [200, answered(429, '2')],
      [50, SUCCESS],
    ]);
    const untilOf = async (nowMs: number) =>
      (await readPace({ queue: queue, rows: NO_ROWS, nowMs }, PREFIX)).pace.asked_to_wait_until;
    expect(await untilOf(20_000)).toBe('1970-01-01T00:00:25.100Z');
    expect(await untilOf(25_099)).toBe('1970-01-01T00:00:25.100Z');
    expect(await untilOf(25_100)).toBeNull();
  });

  test('tells people if a count reached its limit', () => {
    const pace = { under_way: 4, answer_ms: 120, waiting: 10_000, asked_to_wait_until: null };
    expect(paceShown(pace)).toMatchObject({ under_way: 4, waiting: '10000 or more' });
  });
});

test('the attempts of a webhook are those of its newest attempted deliveries, oldest first', async () => {
  const queue = queueInMemory(new MemoryStores(), new FakeClock());
  const older = newDelivery(1, { createdAtMs: 1_000 });
  const newer = newDelivery(2, { createdAtMs: 1_500 });
  const waiting = newDelivery(3, { createdAtMs: 20_000 });
  const other = newDelivery(1, { prefix: 'bbbbbbbbbb' });
  await queue.enqueue([older, newer, waiting, other]);
  const claims = await claimFrom(queue, claimOptions(9_000));
  const claimed = ({ id }: NewDelivery) => claims.find((each) => each.id === id) as ClaimedDelivery;
  await queue.report([
    retryAt(claimed(newer), 3_000, 4_000, TIMEOUT),
    delivered(claimed(older), 2_000),
    delivered(claimed(other), 2_500),
  ]);
  const all = { deliveries: 10, maxRead: 10 };
  const took = { durationMs: 250, retryAfterMs: null };
  expect(await laneAttempts(queue, PREFIX, all)).toEqual([
    { deliveryId: older.id, startedAtMs: 2_000, ok: true, answer: '204', ...took },
    { deliveryId: newer.id, startedAtMs: 3_000, ok: false, answer: 'timeout', ...took },
  ]);
  const ids = async (limits: typeof all) =>
    (await laneAttempts(queue, PREFIX, limits)).map(({ deliveryId }) => deliveryId);
  expect(await ids({ deliveries: 1, maxRead: 10 })).toEqual([newer.id]);
  expect(await ids({ deliveries: 10, maxRead: 2 })).toEqual([newer.id]);
  expect(await laneAttempts(queue, 'cccccccccc', all)).toEqual([]);
});

test('a webhook in a list says since when and why it is switched off or fails', async () => {
  const start = [opened(), keyIssued(), webhookSet()];
  const line = async (events: readonly AccountEvent[], streak?: LaneStreak) => {
    const found = (await readKeys(await rowsAfter(...events), [KEY])).get(KEY);
    return found && webhookLine(found.key, { id: found.accountId, name: 'N' }, streak);
  };
  const streak = { prefix: KEY, failedInARow: 4, failingSinceMs: 10_000, lastAnswers: ['503'] };
  const since = '1970-01-01T00:00:10.000Z';
  const set = { prefix: KEY, account: 7, url: expect.stringMatching(/^https:/), reason: null };
  expect(await line(start)).toMatchObject({ ...set, state: 'active', since: expect.stringMatching(/^2/) });
  const failing = { state: 'failing', since, reason: '4 failed in a row; 503' };
  expect(await line(start, streak)).toMatchObject({ ...set, ...failing });
  const off = { state: 'disabled', reason: '50 failed' };
  expect(await line([...start, onKey('WebhookDisabled')], streak)).toMatchObject({ ...set, ...off });
});
