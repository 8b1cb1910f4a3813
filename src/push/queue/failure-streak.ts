import type { Attempt, AttemptOutcome, WebhookHealth } from './delivery.ts';
import { endOf } from './next-state.ts';

const MAX_ANSWERS = 5;
/** A webhook is switched off long before this. */
const MAX_FAILURES = 100;

/** A delivery that has failed in one of its cycles. It counts once, however often it is added. */
export interface Failure {
  readonly delivery: string;
  readonly cycle: number;
  readonly at: number;
  readonly answer: string;
}

/** The failed deliveries of a webhook since the last success. */
export interface FailureStreak {
  /** When the webhook was last enabled, in milliseconds. Failures before this do not count. */
  readonly enabledAt: number;
  /** Since when the account has had access. The streak's time begins with the first failure after this. */
  readonly timedFrom: number;
  /** The failures in the order in which they were added. */
  readonly failures: readonly Failure[];
}

export const NO_STREAK: FailureStreak = { enabledAt: 0, timedFrom: 0, failures: [] };

/** Adds a failure. Like the functions below it returns the same object if nothing changes, so any of them can be repeated. */
export function extended(streak: FailureStreak, delivery: string, attempt: Attempt): FailureStreak {
  const { enabledAt, failures } = streak;
  const { cycle, outcome } = attempt;
  const at = endOf(attempt);
  if (at < enabledAt || failures.some((each) => each.delivery === delivery && each.cycle === cycle))
    return streak;
  const [first, ...others] = [...failures, { delivery, cycle, at, answer: answerOf(outcome) }];
  return { ...streak, failures: [first as Failure, ...others.slice(1 - MAX_FAILURES)] };
}

/** Ends the streak: a delivery has succeeded. */
export function ended(streak: FailureStreak): FailureStreak {
  return streak.failures.length === 0 ? streak : { ...streak, failures: [] };
}

/** Forgets failures from before the webhook was enabled. */
export function reset(streak: FailureStreak, enabledAt: number): FailureStreak {
  if (enabledAt <= streak.enabledAt) return streak;
  return { ...streak, enabledAt, failures: streak.failures.filter(({ at }) => at >= enabledAt) };
}

/** Ends the time of the streak, not its count, if the account has been without access since it began. */
export function timedFrom(streak: FailureStreak, accessSinceMs: number): FailureStreak {
  return accessSinceMs <= streak.timedFrom ? streak : { ...streak, timedFrom: accessSinceMs };
}

export function healthOf({ timedFrom, failures }: FailureStreak): WebhookHealth {
  return {
    failedInARow: failures.length,
    failingSinceMs: failures.find(({ at }) => at > timedFrom)?.at ?? null,
    lastAnswers: failures
      .slice(-MAX_ANSWERS)
      .map(({ answer }) => answer)
      .reverse(),
  };
}

/** The receiver's answer in words: its status or the failure, such as `503` or `timeout: …`. */
export function answerOf(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : `${outcome.kind}: ${outcome.detail}`);
}

/** The receiver's answer in one word: its status or the kind of the failure. */
export function shortAnswer(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : outcome.kind);
}

function statusOf(outcome: AttemptOutcome): string | undefined {
  const isJudgedByStatus = outcome.ok || outcome.kind === 'status';
  return isJudgedByStatus && outcome.answer !== null ? String(outcome.answer.status) : undefined;
}
