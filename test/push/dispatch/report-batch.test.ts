import { pino } from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { ReportBatch } from '../../../src/push/dispatch/report-batch.ts';
import type { DeliveryReport } from '../../../src/push/queue/delivery.ts';
import { FakeScheduler } from '../../support/deliveries/fake-scheduler.ts';

const logInto = (lines: object[]) => pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
const storeUnavailable = (): Error => new FuelError('STORE_UNAVAILABLE', 'no server answers');

function batch(refuse: (reports: readonly DeliveryReport[]) => Error | undefined = () => undefined) {
  const scheduler = new FakeScheduler();
  const faults: unknown[] = [];
  const commits: string[][] = [];
  const recorded: string[] = [];
  const stored: DeliveryReport[] = [];
  const lines: object[] = [];
  const reports = new ReportBatch({
    scheduler,
    log: logInto(lines),
    queue: {
      async report(all) {
        const refusal = refuse(all);
        if (refusal !== undefined) throw refusal;
        stored.push(...all);
        commits.push(all.map(({ id }) => id));
        return new Map();
      },
    },
  });
  const record = (report: DeliveryReport): void =>
    void reports.record(report).then(
      () => stored.some(({ id }) => id === report.id) && recorded.push(report.id),
      (error: unknown) => faults.push(error),
    );
  const add = (...ids: readonly string[]) => {
    for (const id of ids)
      record({ kind: 'held', id, prefix: 'aaaaaaaaaa', transactionId: 1, leaseToken: 'x' });
  };
  return { scheduler, commits, recorded, stored, faults, reports, lines, add, record };
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

test('after a commit of many those of ten milliseconds share one, until they are few again', async () => {
  const { scheduler, commits, add } = batch();
  add(...Array.from({ length: 48 }, (_, index) => `a${index}`));
  await scheduler.advance(2);
  add('b');
  await scheduler.advance(8);
  add('c');
  await scheduler.advance(1);
  expect(commits.map(({ length }) => length)).toEqual([48]);
  await scheduler.advance(1);
  expect(commits.slice(1)).toEqual([['b', 'c']]);
  add('d');
  await scheduler.advance(2);
  expect(commits.slice(2)).toEqual([['d']]);
});

test('while the store is unavailable outcomes are kept, and recorded once when it is available', async () => {
  let unavailable = true;
  const { scheduler, commits, faults, add } = batch(() => (unavailable ? storeUnavailable() : undefined));
  add('a');
  await scheduler.advance(1_000);
  add('b');
  expect(commits).toEqual([]);
  unavailable = false;
  await scheduler.advance(3_000);
  expect(commits.flat()).toEqual(['a', 'b']);
  expect(faults).toEqual([]);
});

describe('an outcome that the store refuses', () => {
  const answer = { status: 200, headers: { odd: 'x'.repeat(10) }, body: 'too large' };
  const attempt = { cycle: 1, number: 1, startedAtMs: 1, durationMs: 2, othersUnderWay: 0 };
  const large = (id: string): DeliveryReport => ({
    kind: 'delivered',
    id,
    prefix: 'aaaaaaaaaa',
    transactionId: 1,
    leaseToken: 'x',
    attempt: { ...attempt, outcome: { ok: true, answer } },
  });
  const isLarge = (report: DeliveryReport): boolean =>
    report.kind === 'delivered' && report.attempt.outcome.answer?.body !== '';
  const refuseLarge = (reports: readonly DeliveryReport[]): Error | undefined =>
    reports.some(isLarge) ? new FuelError('ITEM_REFUSED', 'too large') : undefined;

  test('is recorded without the answer; the others of its batch are recorded once each', async () => {
    const { scheduler, recorded, stored, faults, record, add } = batch(refuseLarge);
    const others = Array.from({ length: 11 }, (_, index) => `d${index}`);
    add(...others.slice(0, 5));
    record(large('large'));
    add(...others.slice(5));
    await scheduler.advance(10);
    expect(recorded.toSorted()).toEqual([...others, 'large'].toSorted());
    expect(stored.find(({ id }) => id === 'large')).toEqual({
      kind: 'delivered',
      id: 'large',
      prefix: 'aaaaaaaaaa',
      transactionId: 1,
      leaseToken: 'x',
      attempt: { ...attempt, outcome: { ok: true, answer: { status: 200, headers: {}, body: '' } } },
    });
    expect(faults).toEqual([]);
  });

  test('does not make the others follow twice when the store is unavailable before they are all recorded', async () => {
    let unavailable = 1;
    const { scheduler, recorded, stored, faults, add } = batch((reports) => {
      if (reports.length === 4) return new FuelError('ITEM_REFUSED', 'one of these');
      return reports[0]?.id === 'c' && unavailable-- > 0 ? storeUnavailable() : undefined;
    });
    add('a', 'b', 'c', 'd');
    await scheduler.advance(2);
    expect(recorded).toEqual(['a', 'b']);
    await scheduler.advance(100);
    expect(recorded).toEqual(['a', 'b', 'c', 'd']);
    expect([stored.map(({ id }) => id), faults]).toEqual([['a', 'b', 'c', 'd'], []]);
  });

  test('keeps its kind where it is a failure, and says why the detail is gone', async () => {
    const { scheduler, stored, record } = batch((all) => {
      const [report] = all;
      const outcome = report !== undefined && 'attempt' in report ? report.attempt?.outcome : undefined;
      const isShort = outcome?.ok === false && outcome.detail.startsWith('not stored');
      return isShort ? undefined : new FuelError('ITEM_REFUSED', 'no such detail');
    });
    const outcome = { ok: false, kind: 'status', detail: 'x', answer: { ...answer, status: 503 } } as const;
    const report = {
      kind: 'failed',
      id: 'a',
      prefix: 'aaaaaaaaaa',
      transactionId: 1,
      leaseToken: 'x',
      attempt: { ...attempt, outcome },
      reason: 'y',
    } as const;
    record(report);
    await scheduler.advance(10);
    const short = { status: 503, headers: {}, body: '' };
    const detail = 'not stored: no such detail';
    expect(stored).toEqual([
      { ...report, attempt: { ...attempt, outcome: { ...outcome, detail, answer: short } } },
    ]);
  });

  test('keeps no more than 500 characters of why the store refused it', async () => {
    let tries = 0;
    const { scheduler, stored, record } = batch(() =>
      tries++ === 0 ? new FuelError('ITEM_REFUSED', 'x'.repeat(1_000)) : undefined,
    );
    const outcome = { ok: false, kind: 'timeout', detail: 'y', answer: null } as const;
    const report = {
      kind: 'failed',
      id: 'a',
      prefix: 'aaaaaaaaaa',
      transactionId: 1,
      leaseToken: 'x',
      attempt: { ...attempt, outcome },
      reason: 'z',
    } as const;
    record(report);
    await scheduler.advance(10);
    const detail = `not stored: ${'x'.repeat(488)}`;
    expect(stored).toEqual([{ ...report, attempt: { ...attempt, outcome: { ...outcome, detail } } }]);
  });

  test.each<DeliveryReport>([
    { kind: 'held', id: 'a', prefix: 'aaaaaaaaaa', transactionId: 1, leaseToken: 'x' },
    {
      kind: 'failed',
      id: 'a',
      prefix: 'aaaaaaaaaa',
      transactionId: 1,
      leaseToken: 'x',
      attempt: null,
      reason: 'the key is switched off',
    },
  ])('without an attempt is recorded once more as it is: $kind', async (report) => {
    let tries = 0;
    const { scheduler, stored, faults, record } = batch(() =>
      tries++ === 0 ? new FuelError('ITEM_REFUSED', 'not now') : undefined,
    );
    record(report);
    await scheduler.advance(10);
    expect([stored, faults]).toEqual([[report], []]);
  });

  test('also in short is a fault of the program, and is reported under its own name', async () => {
    const { scheduler, faults, add } = batch(() => new TypeError('not a function'));
    add('a');
    await scheduler.advance(10);
    expect(faults).toEqual([new TypeError('not a function')]);
  });
});

test('closing while the store is unavailable ends at once', async () => {
  const { scheduler, recorded, reports, add } = batch(storeUnavailable);
  add('a');
  await scheduler.advance(100);
  await reports.close();
  expect(recorded).toEqual([]);
  expect(scheduler.pending).toEqual([]);
});

test('closing records at most 200 outcomes in one commit, and each of them once', async () => {
  const { commits, recorded, reports, add } = batch();
  const ids = Array.from({ length: 401 }, (_, index) => `${index}`);
  add(...ids);
  await reports.close();
  expect(commits.map((commit) => commit.length)).toEqual([200, 200, 1]);
  expect(recorded).toEqual(ids);
});

test('outcomes that arrive together wait for one timer, since a second one would record them twice', () => {
  const { scheduler, add } = batch();
  add('a', 'b');
  add('c');
  expect(scheduler.pending).toEqual([2]);
});

test('one commit records 200 outcomes at most', async () => {
  const { scheduler, commits, recorded, add } = batch();
  const ids = Array.from({ length: 401 }, (_, index) => `${index}`);
  add(...ids);
  await scheduler.advance(12);
  expect(commits.map((commit) => commit.length)).toEqual([200, 200, 1]);
  expect(recorded).toEqual(ids);
});

test('the pauses while the store is unavailable double from 50 ms to two seconds, and start at 50 ms again after a success', async () => {
  let tries: number[] = [];
  let isUnavailable = true;
  const { scheduler, commits, add } = batch(() => {
    tries.push(scheduler.now());
    return isUnavailable ? storeUnavailable() : undefined;
  });
  const pausesIn = async (ms: number): Promise<number[]> => {
    tries = [];
    await scheduler.advance(ms);
    return tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
  };
  add('a');
  expect(await pausesIn(7_200)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  isUnavailable = false;
  await scheduler.advance(2_000);
  expect(commits).toEqual([['a']]);
  isUnavailable = true;
  add('b');
  expect(await pausesIn(152)).toEqual([50, 100]);
});

test('an outcome that arrives while the others can not be recorded starts no second recording', async () => {
  let tries = 0;
  const { scheduler, add } = batch(() => {
    tries += 1;
    return storeUnavailable();
  });
  add('a');
  await scheduler.advance(2);
  add('b');
  await scheduler.advance(10);
  expect([tries, scheduler.pending.length]).toEqual([1, 1]);
});

test('what can not be recorded at the close is tried once, and lost', async () => {
  let tries = 0;
  const { scheduler, commits, reports, add } = batch(() => {
    tries += 1;
    return storeUnavailable();
  });
  add('a');
  await reports.close();
  expect([tries, commits, scheduler.pending]).toEqual([1, [], []]);
  add('b');
  expect(scheduler.pending).toEqual([]);
  await scheduler.advance(5_000);
  expect(tries).toBe(1);
});

test('what can not be recorded at the close is logged with its number and the reason', async () => {
  const { reports, add, lines } = batch(storeUnavailable);
  add('a', 'b');
  await reports.close();
  expect(lines).toEqual([
    expect.objectContaining({
      level: 40,
      outcomes: 2,
      reason: 'no server answers',
      msg: 'outcomes of attempts were not recorded before the end: these attempts are repeated',
    }),
  ]);
});

test('closing waits for the recording under way', async () => {
  let isUnavailable = true;
  const { scheduler, commits, reports, add } = batch(() => (isUnavailable ? storeUnavailable() : undefined));
  add('a');
  await scheduler.advance(2);
  const closing = reports.close();
  isUnavailable = false;
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

test('the health of its lane is what an outcome resolves with, and what the store refuses is logged as an error, an outage as a warning', async () => {
  const lines: object[] = [];
  const health = { failedInARow: 1, failingSinceMs: 1, lastAnswers: [] };
  const heard: unknown[] = [];
  const faults = [new Error('broken'), storeUnavailable()];
  const scheduler = new FakeScheduler();
  const reports = new ReportBatch({
    scheduler,
    log: logInto(lines),
    queue: {
      async report() {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        return new Map([['aaaaaaaaaa', health]]);
      },
    },
  });
  void reports
    .record({ kind: 'held', id: 'a', prefix: 'aaaaaaaaaa', transactionId: 1, leaseToken: 'x' })
    .then((told) => heard.push(told));
  await scheduler.advance(1_000);
  expect(lines).toMatchObject([
    {
      level: 50,
      delivery: 'a',
      err: { message: 'broken' },
      msg: 'an outcome can not be stored: it is recorded without the receiver’s answer',
    },
    { level: 40, outcomes: 1, msg: 'record of outcomes waits: a store is unavailable' },
    { level: 30, outcomes: 1, msg: 'record of outcomes continues: the store is available again' },
  ]);
  expect(heard).toEqual([health]);
});

test('a pause while the store is unavailable leaves no listener when it is over', async () => {
  const added = vi.spyOn(AbortSignal.prototype, 'addEventListener');
  const removed = vi.spyOn(AbortSignal.prototype, 'removeEventListener');
  onTestFinished(() => void vi.restoreAllMocks());
  let tries = 0;
  const { scheduler, commits, add } = batch(() => (tries++ < 3 ? storeUnavailable() : undefined));
  add('a');
  await scheduler.advance(1_000);
  expect(commits).toEqual([['a']]);
  const listeners = (calls: typeof added.mock.calls) => calls.map(([, listener]) => listener);
  expect(added.mock.calls.length).toBeGreaterThanOrEqual(3);
  expect(listeners(removed.mock.calls)).toEqual(listeners(added.mock.calls));
});
