import { describe, expect, test } from 'vitest';
import type { AttemptOutcome, DeliveryReport, DeliveryState } from '../../../src/push/queue/delivery.ts';
import {
  type DeliveryProgress,
  endOf,
  keptAttempt,
  nextState,
  redeliveryRefusal,
} from '../../../src/push/queue/next-state.ts';
import { SUCCESS, TIMEOUT, UNAVAILABLE } from '../../support/deliveries/deliveries.ts';

const NOW_MS = 9_000;
const STATES: readonly DeliveryState[] = ['pending', 'delivered', 'failed', 'withdrawn'];

/** A delivery in its second cycle, with one attempt made in it. */
function inState(state: DeliveryState, overrides: Partial<DeliveryProgress> = {}): DeliveryProgress {
  const hasEnded = state !== 'pending';
  return {
    state,
    reason: state === 'failed' || state === 'withdrawn' ? 'a reason' : null,
    endedAtMs: hasEnded ? 4_000 : null,
    cycle: 2,
    attemptsInCycle: 1,
    dueAtMs: state === 'pending' ? 5_000 : null,
    leaseToken: state === 'pending' ? 'mine' : null,
    ...overrides,
  };
}

const attemptOf = (outcome: AttemptOutcome, overrides: { cycle?: number; number?: number } = {}) => ({
  cycle: 2,
  number: 2,
  startedAtMs: 1_000,
  durationMs: 250.4,
  othersUnderWay: 0,
  outcome,
  ...overrides,
});
const claim = { id: 'a', prefix: 'aaaaaaaaaa', transactionId: 1, leaseToken: 'mine' };
const delivered: DeliveryReport = { kind: 'delivered', ...claim, attempt: attemptOf(SUCCESS) };
const retry = { kind: 'retry', ...claim, attempt: attemptOf(UNAVAILABLE), dueAtMs: 7_000 } as const;
const failed = { kind: 'failed', ...claim, attempt: attemptOf(UNAVAILABLE), reason: '503' } as const;
const unattempted: DeliveryReport = { kind: 'failed', ...claim, attempt: null, reason: 'the key is off' };
const released: DeliveryReport = { kind: 'released', ...claim };

type Change = Parameters<typeof nextState>[1];
const apply = (progress: DeliveryProgress, change: Change) => nextState(progress, change, NOW_MS);

/** The states in which a change has an effect, with the state after it. */
const effectsOf = (change: Change, overrides: Partial<DeliveryProgress> = {}) =>
  STATES.flatMap((state) => {
    const next = apply(inState(state, overrides), change);
    return next === undefined ? [] : [`${state} → ${next.progress.state}`];
  });

describe('the changes of a delivery', () => {
  test.each<[string, Change, string[]]>([
    ['a success', delivered, ['pending → delivered', 'failed → delivered', 'withdrawn → delivered']],
    ['a retry', retry, ['pending → pending', 'failed → failed', 'withdrawn → withdrawn']],
    ['a last failure', failed, ['pending → failed', 'failed → failed', 'withdrawn → withdrawn']],
    ['an end without an attempt', unattempted, ['pending → failed']],
    ['a release', released, ['pending → pending']],
    ['the end of a lane', { kind: 'end lane', reason: 'off' }, ['pending → failed']],
    ['a withdrawal', { kind: 'withdraw' }, ['pending → withdrawn']],
    ['a redelivery', { kind: 'redeliver', force: false, dueAtMs: 9_500 }, ['failed → pending']],
    [
      'a forced redelivery',
      { kind: 'redeliver', force: true, dueAtMs: 9_500 },
      ['delivered → pending', 'failed → pending'],
    ],
  ])('%s takes these states to those', (_name, change, effects) => {
    expect(effectsOf(change)).toEqual(effects);
  });

  const DUE = { state: 'pending', reason: null, endedAtMs: null, leaseToken: null } as const;
  const ENDED = { dueAtMs: null, leaseToken: null } as const;
  test.each<[string, DeliveryState, Change, Partial<DeliveryProgress>]>([
    [
      'a success',
      'pending',
      delivered,
      { ...ENDED, state: 'delivered', endedAtMs: 1_250, attemptsInCycle: 2 },
    ],
    ['a retry', 'pending', retry, { ...DUE, dueAtMs: 7_000, attemptsInCycle: 2 }],
    [
      'a last failure',
      'pending',
      failed,
      { ...ENDED, state: 'failed', reason: '503', endedAtMs: 1_250, attemptsInCycle: 2 },
    ],
    [
      'an end without an attempt',
      'pending',
      unattempted,
      { ...ENDED, state: 'failed', reason: 'the key is off', endedAtMs: NOW_MS },
    ],
    ['a release', 'pending', released, { ...DUE, dueAtMs: NOW_MS }],
    [
      'the end of a lane',
      'pending',
      { kind: 'end lane', reason: 'off' },
      { ...ENDED, state: 'failed', reason: 'off', endedAtMs: NOW_MS },
    ],
    [
      'a withdrawal',
      'pending',
      { kind: 'withdraw' },
      {
        ...ENDED,
        state: 'withdrawn',
        reason: 'the transaction was voided or cancelled',
        endedAtMs: NOW_MS,
      },
    ],
    [
      'a redelivery',
      'failed',
      { kind: 'redeliver', force: false, dueAtMs: 9_500 },
      { ...DUE, dueAtMs: 9_500, cycle: 3, attemptsInCycle: 0 },
    ],
  ])('%s sets what belongs to it, ends the claim, and leaves the rest', (_, state, change, set) => {
    expect(apply(inState(state), change)?.progress).toEqual({ ...inState(state), ...set });
  });

  test('by a report have no effect where another claim has the delivery, a success excepted', () => {
    for (const report of [retry, failed, unattempted, released])
      expect(apply(inState('pending', { leaseToken: 'another' }), report)).toBeUndefined();
    expect(apply(inState('pending', { leaseToken: 'another' }), delivered)?.progress).toMatchObject({
      state: 'delivered',
      reason: null,
    });
  });

  test('by a report on a former cycle have no effect', () => {
    expect(effectsOf(delivered, { cycle: 3, leaseToken: 'another' })).toEqual([]);
    expect(effectsOf(failed, { cycle: 3, leaseToken: 'another' })).toEqual([]);
  });

  test('keep a failed attempt whose delivery ended meanwhile, once, and leave the rest as it is', () => {
    for (const report of [retry, failed]) {
      for (const state of ['failed', 'withdrawn'] as const) {
        const next = apply(inState(state), report);
        expect(next?.progress).toEqual({ ...inState(state), attemptsInCycle: 2 });
        expect(next).toMatchObject({ attempt: report.attempt });
        expect(next?.streak).toBeUndefined();
        expect(apply(inState(state, { attemptsInCycle: 2 }), report)).toBeUndefined();
      }
    }
  });

  test('move the failure streak by a success and by a last failure only', () => {
    const streaks = [delivered, retry, failed, unattempted, released].map(
      (report) => apply(inState('pending'), report)?.streak,
    );
    expect(streaks).toEqual(['end', undefined, 'extend', undefined, undefined]);
  });
});

test('a redelivery is refused while a delivery is open, of a withdrawn one always, and of a delivered one without force', () => {
  expect(STATES.map((state) => redeliveryRefusal(state, false))).toEqual([
    'pending',
    'delivered',
    undefined,
    'withdrawn',
  ]);
  expect(redeliveryRefusal('delivered', true)).toBeUndefined();
});

test('an attempt of an erased transaction is kept without the words of the receiver', () => {
  const nothing = { headers: {}, body: '' };
  const answer = { ...UNAVAILABLE.answer, status: 503, ...nothing };
  expect(keptAttempt(retry.attempt, true)).toEqual({
    ...retry.attempt,
    outcome: { ...UNAVAILABLE, answer },
  });
  expect(keptAttempt(attemptOf(TIMEOUT), true)).toEqual(attemptOf(TIMEOUT));
  expect(keptAttempt(retry.attempt, false)).toEqual(retry.attempt);
});

test('an attempt ends when its time is over, in whole milliseconds', () => {
  expect(endOf(attemptOf(SUCCESS))).toBe(1_250);
  expect(endOf({ ...attemptOf(SUCCESS), durationMs: 250.5 })).toBe(1_251);
});
