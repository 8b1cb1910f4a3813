import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { ReportBatch } from '../../../src/push/dispatch/report-batch.ts';
import type { AttemptOutcome, DeliveryReport, WebhookHealth } from '../../../src/push/queue/delivery.ts';
import { FakeAlarmClock } from '../../support/deliveries/fake-alarm-clock.ts';

const UNAVAILABLE = new FuelError('STORE_UNAVAILABLE', 'no server answers');
const HEALTH: WebhookHealth = { failedInARow: 1, failingSinceMs: 1, lastAnswers: [] };
const names = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);
const claim = (id: string) => ({ id, prefix: 'aaaaaaaaaa', transactionId: 1, leaseToken: 'x' });
const failure = (id: string, outcome: AttemptOutcome | null): DeliveryReport => ({
  kind: 'failed',
  ...claim(id),
  reason: 'y',
  attempt: outcome && {
    cycle: 1,
    number: 1,
    startedAtMs: 1,
    durationMs: 2,
    othersUnderWay: 0,
    outcome,
  },
});

/** A batch whose store refuses as said. `heard` has what each record resolved with, `faults` what it rejected with. */
function batch(refuse: (reports: readonly DeliveryReport[]) => Error | undefined = () => undefined) {
  const clock = new FakeAlarmClock();
  const stored: DeliveryReport[] = [];
  const commits: string[][] = [];
  const triedAtMs: number[] = [];
  const heard: unknown[] = [];
  const faults: unknown[] = [];
  const lines: object[] = [];
  const reports = new ReportBatch({
    clock,
    steady: clock,
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    queue: {
      async report(all) {
        triedAtMs.push(clock.now());
        const refusal = refuse(all);
        if (refusal !== undefined) throw refusal;
        stored.push(...all);
        commits.push(all.map(({ id }) => id));
        return new Map([['aaaaaaaaaa', HEALTH]]);
      },
    },
  });
  const record = (report: DeliveryReport): void =>
    void reports.record(report).then(
      (health) => heard.push(health),
      (error: unknown) => faults.push(error),
    );
  const add = (...ids: readonly string[]) => {
    for (const id of ids) record({ kind: 'released', ...claim(id) });
  };
  return {
    clock,
    steady: clock,
    commits,
    stored,
    triedAtMs,
    heard,
    faults,
    reports,
    lines,
    add,
    record,
  };
}

/** Refuses with an error as long as a function says so. */
function refusing(error: Error) {
  const state = { isRefusing: true };
  return { state, refuse: () => (state.isRefusing ? error : undefined) };
}

describe('a commit', () => {
  test('records the outcomes that arrive within ten milliseconds, in their order, and resolves with their health', async () => {
    const { clock, commits, heard, add } = batch();
    add('a');
    await clock.advance(9);
    add('b', 'c');
    expect([commits, clock.pending]).toEqual([[], [1]]); // a second timer would record them twice
    await clock.advance(1);
    add('d');
    await clock.advance(10);
    expect(commits).toEqual([['a', 'b', 'c'], ['d']]);
    expect(heard).toEqual([HEALTH, HEALTH, HEALTH, HEALTH]);
  });

  test.each(['while it runs', 'at the close'])('records 200 outcomes at most, %s', async (when) => {
    const { clock, commits, heard, reports, add } = batch();
    add(...names(401));
    if (when === 'at the close') await reports.close();
    else await clock.advance(20);
    expect(commits.map(({ length }) => length)).toEqual([200, 200, 1]);
    expect([commits.flat(), heard.length]).toEqual([names(401), 401]);
  });
});

describe('while the store is unavailable', () => {
  test('outcomes are kept, and tried again after 50 ms, then half as often each time, at least every two seconds', async () => {
    const { state, refuse } = refusing(UNAVAILABLE);
    const { clock, commits, triedAtMs, lines, add } = batch(refuse);
    const pauses = () => triedAtMs.slice(1).map((at, index) => at - (triedAtMs[index] ?? 0));
    add('a');
    await clock.advance(10);
    add('b');
    expect([triedAtMs.length, clock.pending.length]).toEqual([1, 1]); // it starts no second recording
    await clock.advance(7_200);
    expect(pauses()).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    state.isRefusing = false;
    await clock.advance(2_000);
    expect(commits.flat()).toEqual(['a', 'b']);
    expect(lines).toMatchObject([
      { level: 40, outcomes: 1, msg: 'record of outcomes waits: a store is unavailable' },
      { level: 30, outcomes: 1, msg: 'record of outcomes continues: the store is available again' },
    ]);
    state.isRefusing = true;
    triedAtMs.length = 0;
    add('c');
    await clock.advance(160);
    expect(pauses()).toEqual([50, 100]);
  });

  test('closing waits for the recording under way', async () => {
    const { state, refuse } = refusing(UNAVAILABLE);
    const { clock, commits, reports, add } = batch(refuse);
    add('a');
    await clock.advance(10);
    const closing = reports.close();
    state.isRefusing = false;
    await clock.advance(50);
    await closing;
    expect(commits).toEqual([['a']]);
  });

  test.each([0, 100])('closing %i ms later tries once more, logs what is lost, and ends', async (ms) => {
    const { clock, commits, triedAtMs, reports, lines, add } = batch(() => UNAVAILABLE);
    add('a', 'b');
    await clock.advance(ms);
    const before = triedAtMs.length;
    await reports.close();
    add('c');
    await clock.advance(5_000);
    expect([triedAtMs.length - before, commits, clock.pending]).toEqual([1, [], []]);
    expect(lines.at(-1)).toMatchObject({
      level: 40,
      outcomes: 2,
      reason: 'no server answers',
      msg: 'outcomes of attempts were not recorded before the end: these attempts are repeated',
    });
  });
});

test('a store that is closed is not asked again', async () => {
  const { clock, triedAtMs, add } = batch(() => new FuelError('STORE_CLOSED', 'closed'));
  for (const id of ['a', 'b']) {
    add(id);
    await clock.advance(10_000);
  }
  expect(triedAtMs).toHaveLength(1);
});

describe('an outcome that the store refuses', () => {
  const REFUSED = new FuelError('ITEM_REFUSED', 'too large');
  const answer = { status: 503, headers: { odd: 'x' }, body: 'too large' };
  const status = { ok: false, kind: 'status', detail: 'x', answer } as const;
  const silent = { status: 503, headers: {}, body: '' };

  test('is recorded without the answer and logged as an error; the others of its batch are recorded once each', async () => {
    const isLarge = (report: DeliveryReport): boolean =>
      'attempt' in report && report.attempt?.outcome.answer?.body !== '';
    const { clock, stored, heard, faults, lines, record, add } = batch((reports) =>
      reports.some(isLarge) ? REFUSED : undefined,
    );
    add(...names(5));
    record(failure('large', status));
    add(...names(11).slice(5));
    await clock.advance(10);
    expect(stored.map(({ id }) => id).toSorted()).toEqual([...names(11), 'large'].toSorted());
    const detail = 'not stored: too large';
    expect(stored).toContainEqual(failure('large', { ...status, detail, answer: silent }));
    expect([heard.length, faults]).toEqual([12, []]);
    const msg = 'an outcome cannot be stored: it is recorded without the receiver’s answer';
    expect(lines).toMatchObject([{ level: 50, delivery: 'large', err: { message: 'too large' }, msg }]);
  });

  test('does not make the others follow twice when the store is unavailable before they are all recorded', async () => {
    let unavailable = 1;
    const { clock, heard, stored, faults, add } = batch((reports) => {
      if (reports.length === 4) return REFUSED;
      return reports[0]?.id === 'c' && unavailable-- > 0 ? UNAVAILABLE : undefined;
    });
    add('a', 'b', 'c', 'd');
    await clock.advance(10);
    expect(heard).toHaveLength(2);
    await clock.advance(100);
    expect([stored.map(({ id }) => id), heard.length, faults]).toEqual([['a', 'b', 'c', 'd'], 4, []]);
  });

  const timeout = { ok: false, kind: 'timeout', detail: 'y', answer: null } as const;
  const success = { ok: true, answer } as const;
  test.each<[string, Error, DeliveryReport, DeliveryReport]>([
    ['a success', REFUSED, failure('a', success), failure('a', { ok: true, answer: silent })],
    [
      'a refusal in many words, of which 500 characters are kept',
      new FuelError('ITEM_REFUSED', 'x'.repeat(1_000)),
      failure('a', timeout),
      failure('a', { ...timeout, detail: `not stored: ${'x'.repeat(488)}` }),
    ],
    ['an end without an attempt', REFUSED, failure('a', null), failure('a', null)],
    ['a release', REFUSED, { kind: 'released', ...claim('a') }, { kind: 'released', ...claim('a') }],
  ])('is recorded once more, in short: %s', async (_, refusal, report, short) => {
    let tries = 0;
    const { clock, stored, faults, record } = batch(() => (tries++ === 0 ? refusal : undefined));
    record(report);
    await clock.advance(10);
    expect([stored, faults]).toEqual([[short], []]);
  });

  test('also in short is a fault of the program, and is reported under its own name', async () => {
    const { clock, faults, add } = batch(() => new TypeError('not a function'));
    add('a');
    await clock.advance(10);
    expect(faults).toEqual([new TypeError('not a function')]);
  });
});
