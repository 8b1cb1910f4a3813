import { describe, expect, test } from 'vitest';
import type { Attempt, AttemptOutcome, WebhookHealth } from '../../../src/deliveries/queue/delivery-queue.ts';
import { endOf, HealthRuns, healthy } from '../../../src/deliveries/queue/health-run.ts';
import { SUCCESS, TIMEOUT, UNAVAILABLE } from '../../support/deliveries/deliveries.ts';

const attempt = (outcome: AttemptOutcome, startedAtMs = 1_000): Attempt => ({
  cycle: 1,
  number: 3,
  startedAtMs,
  durationMs: 250.4,
  outcome,
});

/** The runs of a batch, on lanes that stood so before it, and the prefixes that were read. */
function runsOn(before: Readonly<Record<string, WebhookHealth>> = {}) {
  const read: string[] = [];
  const runs = new HealthRuns((prefix) => {
    read.push(prefix);
    return before[prefix] ?? healthy();
  });
  return { runs, read };
}

const failing: WebhookHealth = { failedInARow: 24, failingSinceMs: 500, lastAnswers: ['500', '502'] };

describe('the run of failures of a webhook', () => {
  test('begins with the end of its first failure and counts on from there', () => {
    const { runs } = runsOn();
    runs.failed('a', attempt(UNAVAILABLE));
    expect(runs.changed.get('a')).toEqual({ failedInARow: 1, failingSinceMs: 1_250, lastAnswers: ['503'] });
    runs.failed('a', attempt(TIMEOUT, 9_000));
    expect(runs.changed.get('a')).toEqual({
      failedInARow: 2,
      failingSinceMs: 1_250,
      lastAnswers: ['timeout: no answer in 500 ms', '503'],
    });
  });

  test('goes on from where it stood before the batch', () => {
    const { runs } = runsOn({ a: failing });
    runs.failed('a', attempt(UNAVAILABLE));
    expect(runs.changed.get('a')).toEqual({
      failedInARow: 25,
      failingSinceMs: 500,
      lastAnswers: ['503', '500', '502'],
    });
  });

  test('whose time a hold ended begins in time with the next failure, and keeps its count', () => {
    const { runs } = runsOn({ a: { ...failing, failingSinceMs: null } });
    runs.failed('a', attempt(UNAVAILABLE));
    expect(runs.changed.get('a')).toMatchObject({ failedInARow: 25, failingSinceMs: 1_250 });
  });

  test('keeps the last five answers, newest first', () => {
    const { runs } = runsOn();
    for (const status of [500, 501, 502, 503, 504, 505]) {
      runs.failed(
        'a',
        attempt({ ok: false, kind: 'status', detail: '', answer: { status, headers: {}, body: '' } }),
      );
    }
    expect(runs.changed.get('a')?.lastAnswers).toEqual(['505', '504', '503', '502', '501']);
  });

  test('names an answer that came by its status, and else what went wrong', () => {
    const cut: AttemptOutcome = { ok: false, kind: 'cut', detail: 'closed', answer: SUCCESS.answer };
    const empty: AttemptOutcome = { ok: false, kind: 'status', detail: 'none', answer: null };
    const { runs } = runsOn();
    for (const outcome of [SUCCESS, UNAVAILABLE, TIMEOUT, cut, empty]) runs.failed('a', attempt(outcome));
    expect(runs.changed.get('a')?.lastAnswers).toEqual([
      'status: none',
      'cut: closed',
      'timeout: no answer in 500 ms',
      '503',
      '204',
    ]);
  });

  test('ends with a success, and another one begins after it', () => {
    const { runs } = runsOn({ a: failing });
    runs.delivered('a');
    expect(runs.changed.get('a')).toEqual(healthy());
    runs.failed('a', attempt(UNAVAILABLE));
    expect(runs.changed.get('a')).toEqual({ failedInARow: 1, failingSinceMs: 1_250, lastAnswers: ['503'] });
  });

  test('is not changed by a success where there is none, of which nothing need be written', () => {
    const { runs } = runsOn({
      counted: { ...failing, failingSinceMs: null },
      timed: { ...failing, failedInARow: 0 },
    });
    for (const prefix of ['new', 'counted', 'timed']) runs.delivered(prefix);
    expect([...runs.changed.keys()]).toEqual(['counted', 'timed']);
  });

  test('of one webhook is read once in a batch, and is none of another’s', () => {
    const { runs, read } = runsOn({ a: failing });
    runs.failed('a', attempt(UNAVAILABLE));
    runs.delivered('b');
    runs.failed('b', attempt(UNAVAILABLE));
    runs.failed('a', attempt(UNAVAILABLE));
    expect(read).toEqual(['a', 'b']);
    expect([...runs.changed].map(([prefix, { failedInARow }]) => [prefix, failedInARow])).toEqual([
      ['a', 26],
      ['b', 1],
    ]);
  });
});

test('an attempt ends when its time is over, in whole milliseconds', () => {
  expect(endOf(attempt(SUCCESS))).toBe(1_250);
  expect(endOf({ ...attempt(SUCCESS), durationMs: 250.5 })).toBe(1_251);
});
