import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, DeliveryReport } from '../../src/delivery/delivery-queue.ts';
import { ReportBatch } from '../../src/delivery/report-batch.ts';
import { FuelError } from '../../src/errors.ts';
import { FakeScheduler } from '../support/fake-scheduler.ts';

const storeUnavailable = (): Error => new FuelError('STORE_UNAVAILABLE', 'no server answers');

function batch(refuse: (reports: readonly DeliveryReport[]) => Error | undefined = () => undefined) {
  const scheduler = new FakeScheduler();
  const faults: unknown[] = [];
  const commits: string[][] = [];
  const recorded: string[] = [];
  const stored: DeliveryReport[] = [];
  const reports = new ReportBatch({
    scheduler,
    log: pino({ enabled: false }),
    queue: {
      async report(all) {
        const refusal = refuse(all);
        if (refusal !== undefined) throw refusal;
        stored.push(...all);
        commits.push(all.map(({ id }) => id));
        return new Map();
      },
    },
    onRecorded: (outcomes) => void recorded.push(...outcomes.map(({ report }) => report.id)),
    onFailed: (error) => void faults.push(error),
  });
  const add = (...ids: readonly string[]) => {
    for (const id of ids) {
      const report: DeliveryReport = { kind: 'held', id, lease: 'x' };
      reports.add({ delivery: { id } as ClaimedDelivery, report });
    }
  };
  return { scheduler, commits, recorded, stored, faults, reports, add };
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
  const attempt = { cycle: 1, number: 1, startedAtMs: 1, durationMs: 2 };
  const large = (id: string): DeliveryReport => ({
    kind: 'delivered',
    id,
    lease: 'x',
    attempt: { ...attempt, outcome: { ok: true, answer } },
  });
  const isLarge = (report: DeliveryReport): boolean =>
    report.kind === 'delivered' && report.attempt.outcome.answer?.body !== '';
  const refuseLarge = (reports: readonly DeliveryReport[]): Error | undefined =>
    reports.some(isLarge) ? new FuelError('ITEM_REFUSED', 'too large') : undefined;

  test('is recorded without the answer; the others of its batch are recorded once each', async () => {
    const { scheduler, recorded, stored, faults, reports, add } = batch(refuseLarge);
    const others = Array.from({ length: 11 }, (_, index) => `d${index}`);
    add(...others.slice(0, 5));
    reports.add({ delivery: { id: 'large' } as ClaimedDelivery, report: large('large') });
    add(...others.slice(5));
    await scheduler.advance(10);
    expect(recorded.toSorted()).toEqual([...others, 'large'].toSorted());
    expect(stored.find(({ id }) => id === 'large')).toEqual({
      kind: 'delivered',
      id: 'large',
      lease: 'x',
      attempt: { ...attempt, outcome: { ok: true, answer: { status: 200, headers: {}, body: '' } } },
    });
    expect(faults).toEqual([]);
  });

  test('keeps its kind where it is a failure, and says why the detail is gone', async () => {
    const { scheduler, stored, reports } = batch((all) => {
      const [report] = all;
      const outcome = report !== undefined && 'attempt' in report ? report.attempt?.outcome : undefined;
      const isShort = outcome?.ok === false && outcome.detail.startsWith('not stored');
      return isShort ? undefined : new FuelError('ITEM_REFUSED', 'no such detail');
    });
    const outcome = { ok: false, kind: 'status', detail: 'x', answer: { ...answer, status: 503 } } as const;
    const report = {
      kind: 'failed',
      id: 'a',
      lease: 'x',
      attempt: { ...attempt, outcome },
      reason: 'y',
    } as const;
    reports.add({ delivery: { id: 'a' } as ClaimedDelivery, report });
    await scheduler.advance(10);
    const short = { status: 503, headers: {}, body: '' };
    const detail = 'not stored: no such detail';
    expect(stored).toEqual([
      { ...report, attempt: { ...attempt, outcome: { ...outcome, detail, answer: short } } },
    ]);
  });

  test('also in short is a fault of the program, and is reported under its own name', async () => {
    const { scheduler, faults, add } = batch(() => new TypeError('not a function'));
    add('a');
    await scheduler.advance(10);
    expect(faults).toEqual([new TypeError('not a function')]);
  });
});

test('what is added while a batch is being recorded is recorded after it', async () => {
  const { scheduler, commits, add } = batch();
  add('a');
  await scheduler.advance(2);
  add('b');
  await scheduler.advance(2);
  expect(commits).toEqual([['a'], ['b']]);
});

test('closing while the store is unavailable ends at once', async () => {
  const { scheduler, recorded, reports, add } = batch(storeUnavailable);
  add('a');
  await scheduler.advance(100);
  await reports.close();
  expect(recorded).toEqual([]);
  expect(scheduler.pending).toEqual([]);
});

test('closing records what is left without waiting', async () => {
  const { commits, reports, add } = batch();
  add('a', 'b');
  await reports.close();
  expect(commits).toEqual([['a', 'b']]);
});
