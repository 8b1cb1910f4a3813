import { describe, expect, test } from 'vitest';
import type { Attempt, AttemptOutcome, WebhookHealth } from '../../../src/push/queue/delivery.ts';
import { FailureStreaks, healthy } from '../../../src/push/queue/failure-streak.ts';
import { SUCCESS, TIMEOUT, UNAVAILABLE } from '../../support/deliveries/deliveries.ts';

const attempt = (outcome: AttemptOutcome, startedAtMs = 1_000): Attempt => ({
  cycle: 1,
  number: 3,
  startedAtMs,
  durationMs: 250.4,
  outcome,
});

/** The streaks of a batch, on lanes in the given state, and the prefixes that were read. */
function streaksOn(before: Readonly<Record<string, WebhookHealth>> = {}) {
  const read: string[] = [];
  const streaks = new FailureStreaks((prefix) => {
    read.push(prefix);
    return before[prefix] ?? healthy();
  });
  return { streaks, read };
}

const failing: WebhookHealth = { failedInARow: 24, failingSinceMs: 500, lastAnswers: ['500', '502'] };

describe('the failure streak of a webhook', () => {
  test('starts with the end of its first failure and counts from there', () => {
    const { streaks } = streaksOn();
    streaks.extend('a', attempt(UNAVAILABLE));
    expect(streaks.changed.get('a')).toEqual({
      failedInARow: 1,
      failingSinceMs: 1_250,
      lastAnswers: ['503'],
    });
    streaks.extend('a', attempt(TIMEOUT, 9_000));
    expect(streaks.changed.get('a')).toEqual({
      failedInARow: 2,
      failingSinceMs: 1_250,
      lastAnswers: ['timeout: no answer in 500 ms', '503'],
    });
  });

  test('continues from where it was before the batch', () => {
    const { streaks } = streaksOn({ a: failing });
    streaks.extend('a', attempt(UNAVAILABLE));
    expect(streaks.changed.get('a')).toEqual({
      failedInARow: 25,
      failingSinceMs: 500,
      lastAnswers: ['503', '500', '502'],
    });
  });

  test('gets its time from the next failure where a hold ended it, and keeps its count', () => {
    const { streaks } = streaksOn({ a: { ...failing, failingSinceMs: null } });
    streaks.extend('a', attempt(UNAVAILABLE));
    expect(streaks.changed.get('a')).toMatchObject({ failedInARow: 25, failingSinceMs: 1_250 });
  });

  test('keeps the last five answers, newest first', () => {
    const { streaks } = streaksOn();
    for (const status of [500, 501, 502, 503, 504, 505]) {
      streaks.extend(
        'a',
        attempt({ ok: false, kind: 'status', detail: '', answer: { status, headers: {}, body: '' } }),
      );
    }
    expect(streaks.changed.get('a')?.lastAnswers).toEqual(['505', '504', '503', '502', '501']);
  });

  test('names an answer by its status, and otherwise what went wrong', () => {
    const cut: AttemptOutcome = { ok: false, kind: 'cut', detail: 'closed', answer: SUCCESS.answer };
    const empty: AttemptOutcome = { ok: false, kind: 'status', detail: 'none', answer: null };
    const { streaks } = streaksOn();
    for (const outcome of [SUCCESS, UNAVAILABLE, TIMEOUT, cut, empty]) streaks.extend('a', attempt(outcome));
    expect(streaks.changed.get('a')?.lastAnswers).toEqual([
      'status: none',
      'cut: closed',
      'timeout: no answer in 500 ms',
      '503',
      '204',
    ]);
  });

  test('ends with a success, and a new one begins after it', () => {
    const { streaks } = streaksOn({ a: failing });
    streaks.end('a');
    expect(streaks.changed.get('a')).toEqual(healthy());
    streaks.extend('a', attempt(UNAVAILABLE));
    expect(streaks.changed.get('a')).toEqual({
      failedInARow: 1,
      failingSinceMs: 1_250,
      lastAnswers: ['503'],
    });
  });

  test('is not changed by a success where there is none, so that nothing has to be written', () => {
    const { streaks } = streaksOn({
      counted: { ...failing, failingSinceMs: null },
      timed: { ...failing, failedInARow: 0 },
    });
    for (const prefix of ['new', 'counted', 'timed']) streaks.end(prefix);
    expect([...streaks.changed.keys()]).toEqual(['counted', 'timed']);
  });

  test('is read once in a batch for each webhook, and is kept apart from others’', () => {
    const { streaks, read } = streaksOn({ a: failing });
    streaks.extend('a', attempt(UNAVAILABLE));
    streaks.end('b');
    streaks.extend('b', attempt(UNAVAILABLE));
    streaks.extend('a', attempt(UNAVAILABLE));
    expect(read).toEqual(['a', 'b']);
    expect([...streaks.changed].map(([prefix, { failedInARow }]) => [prefix, failedInARow])).toEqual([
      ['a', 26],
      ['b', 1],
    ]);
  });
});
