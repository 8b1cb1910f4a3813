import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { ClaimedDelivery, DeliveryReport } from '../../src/delivery/delivery-queue.ts';
import { ReportBatch } from '../../src/delivery/report-batch.ts';
import { FuelError } from '../../src/errors.ts';
import { FakeScheduler } from '../support/fake-scheduler.ts';

function batch(fail: () => boolean = () => false, togetherMs?: number) {
  const scheduler = new FakeScheduler();
  const commits: string[][] = [];
  const recorded: string[] = [];
  const reports = new ReportBatch({
    scheduler,
    togetherMs,
    log: pino({ enabled: false }),
    queue: {
      async report(all) {
        if (fail()) throw new Error('the store is away');
        commits.push(all.map(({ id }) => id));
        return new Map();
      },
    },
    onRecorded: (outcomes) => void recorded.push(...outcomes.map(({ report }) => report.id)),
  });
  const add = (...ids: readonly string[]) => {
    for (const id of ids) {
      const report: DeliveryReport = { kind: 'held', id, lease: 'x' };
      reports.add({ delivery: { id } as ClaimedDelivery, report });
    }
  };
  return { scheduler, commits, recorded, reports, add };
}

test('outcomes that arrive within two milliseconds are recorded in one commit, in their order', async () => {
  const { scheduler, commits, recorded, add } = batch();
  add('a');
  await scheduler.advance(1);
  add('b', 'c');
  await scheduler.advance(1);
  add('d');
  await scheduler.advance(2);
  expect(commits).toEqual([['a', 'b', 'c'], ['d']]);
  expect(recorded).toEqual(['a', 'b', 'c', 'd']);
});

test('while the store is away outcomes are kept, and recorded once when it is back', async () => {
  let away = true;
  const { scheduler, commits, add } = batch(() => away);
  add('a');
  await scheduler.advance(1_000);
  add('b');
  expect(commits).toEqual([]);
  away = false;
  await scheduler.advance(2_000);
  expect(commits).toEqual([['a', 'b']]);
});

test('closing records what is left without waiting', async () => {
  const { commits, reports, add } = batch();
  add('a', 'b');
  await reports.close();
  expect(commits).toEqual([['a', 'b']]);
});

test('outcomes come together for as long as the queue wants them to', async () => {
  const { scheduler, commits, add } = batch(() => false, 10);
  add('a');
  await scheduler.advance(9);
  add('b');
  expect(commits).toEqual([]);
  await scheduler.advance(1);
  expect(commits).toEqual([['a', 'b']]);
});

test('one commit records 200 outcomes at most', async () => {
  const { scheduler, commits, recorded, add } = batch();
  const ids = Array.from({ length: 401 }, (_, index) => `${index}`);
  add(...ids);
  await scheduler.advance(2);
  expect(commits.map((commit) => commit.length)).toEqual([200, 200, 1]);
  expect(recorded).toEqual(ids);
});

test('the pauses while the store is away double from 50 ms to two seconds, and begin anew after a success', async () => {
  let tries: number[] = [];
  let away = true;
  const { scheduler, commits, add } = batch(() => {
    tries.push(scheduler.now());
    return away;
  });
  const pausesIn = async (ms: number): Promise<number[]> => {
    tries = [];
    await scheduler.advance(ms);
    return tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
  };
  add('a');
  expect(await pausesIn(7_200)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  away = false;
  await scheduler.advance(2_000);
  expect(commits).toEqual([['a']]);
  away = true;
  add('b');
  expect(await pausesIn(152)).toEqual([50, 100]);
});

test('an outcome that arrives while the others can not be recorded starts no second recording', async () => {
  let tries = 0;
  const { scheduler, add } = batch(() => {
    tries += 1;
    return true;
  });
  add('a');
  await scheduler.advance(2);
  add('b');
  await scheduler.advance(10);
  expect([tries, scheduler.pending.length]).toEqual([1, 1]);
});

test('after a recording the next outcome waits for others again', async () => {
  const { scheduler, commits, add } = batch();
  add('a');
  await scheduler.advance(2);
  add('b');
  await scheduler.advance(1);
  expect(commits).toEqual([['a']]);
  await scheduler.advance(1);
  expect(commits).toEqual([['a'], ['b']]);
});

test('what can not be recorded at the close is tried once, and lost', async () => {
  let tries = 0;
  const { scheduler, commits, reports, add } = batch(() => {
    tries += 1;
    return true;
  });
  add('a');
  await reports.close();
  expect([tries, commits, scheduler.pending]).toEqual([1, [], []]);
  add('b');
  await scheduler.advance(5_000);
  expect(tries).toBe(1);
});

test('closing waits for the recording under way', async () => {
  let away = true;
  const { scheduler, commits, reports, add } = batch(() => away);
  add('a');
  await scheduler.advance(2);
  const closing = reports.close();
  away = false;
  await scheduler.advance(50);
  await closing;
  expect(commits).toEqual([['a']]);
});

test('a store that is closed is not asked again', async () => {
  let tries = 0;
  const { scheduler, add } = batch(() => {
    tries += 1;
    throw new FuelError('STORE_CLOSED', 'closed');
  });
  add('a');
  await scheduler.advance(10_000);
  add('b');
  await scheduler.advance(10_000);
  expect(tries).toBe(1);
});

test('what the store says of the lanes goes on to whoever asked, and its failures into the log', async () => {
  const lines: { level: number; outcomes: number }[] = [];
  const health = new Map([['a', { failedInARow: 1, failingSinceMs: 1, lastAnswers: [] }]]);
  const heard: unknown[] = [];
  const faults = [new Error('broken'), new FuelError('STORE_UNAVAILABLE', 'away')];
  const scheduler = new FakeScheduler();
  const reports = new ReportBatch({
    scheduler,
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    queue: {
      async report() {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        return health;
      },
    },
    onRecorded: (_, told) => void heard.push(told),
  });
  reports.add({ delivery: { id: 'a' } as ClaimedDelivery, report: { kind: 'held', id: 'a', lease: 'x' } });
  await scheduler.advance(1_000);
  expect(lines.map(({ level, outcomes }) => [level, outcomes])).toEqual([
    [50, 1],
    [40, 1],
  ]);
  expect(heard).toEqual([health]);
});
