import type { AccountKey, AccountWebhook } from '../../domain/account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import { type HeldParts, shownBacklog } from '../../push/held.ts';
import { retryAfterMs } from '../../push/pace/retry-after.ts';
import type { LaneStreak, WebhookHealth } from '../../push/queue/delivery.ts';
import type { Backlog, DeliveryReads } from '../../push/queue/delivery-queue.ts';
import { shortAnswer } from '../../push/queue/failure-streak.ts';
import { endOf } from '../../push/queue/next-state.ts';

/** The state of a webhook. A disabled one has a reason and a time. */
export function webhookState(webhook: AccountWebhook | null) {
  const disabled = webhook?.disabled ?? null;
  const state = webhook === null ? 'none' : disabled === null ? 'active' : 'disabled';
  return {
    state,
    reason: disabled?.reason ?? null,
    since: dateTimeOrNull(disabled?.sinceMs),
  } as const;
}

/** A key's webhook, whether it is on, and its failures in a row. */
export function webhookAnswer(accountId: number, { prefix, webhook }: AccountKey, health: WebhookHealth) {
  return {
    prefix,
    account: accountId,
    ...webhookState(webhook),
    url: webhook?.url ?? null,
    set_at: dateTimeOrNull(webhook?.setAtMs),
    rate_per_second: webhook?.ratePerSecond ?? null,
    health: {
      failed_in_a_row: health.failedInARow,
      failing_since: dateTimeOrNull(health.failingSinceMs),
      last_answers: health.lastAnswers,
    },
  };
}

/** A webhook in a list: its state, and since when and why it is in that state. One that fails has a streak. */
export function webhookLine(
  { prefix, webhook }: Pick<AccountKey, 'prefix' | 'webhook'>,
  account: { readonly id: number; readonly name: string | null },
  streak: LaneStreak | undefined,
) {
  const { state, ...disabled } = webhookState(webhook);
  const isFailing = state === 'active' && streak !== undefined;
  const failing = isFailing && {
    state: 'failing',
    since: dateTimeOrNull(streak.failingSinceMs),
    reason: `${streak.failedInARow} failed in a row; ${streak.lastAnswers[0] ?? 'unknown'}`,
  };
  return {
    prefix,
    state,
    since: disabled.since ?? dateTimeOrNull(webhook?.setAtMs),
    reason: disabled.reason,
    ...failing,
    account: account.id,
    name: account.name,
    url: webhook?.url ?? null,
  };
}

/** How many deliveries' attempts are read, and among how many of the newest deliveries these are searched. */
const READ = { deliveries: 60, maxRead: 2_000 };
/** The most open deliveries that are counted. */
export const MAX_COUNTED = 10_000;

/** An attempt without what its receiver wrote. */
export interface LaneAttempt {
  readonly deliveryId: string;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly ok: boolean;
  /** The receiver's status, or the kind of failure if there was no answer. */
  readonly answer: string;
  /** How long the receiver asked us to wait after the attempt; `null` if it did not. */
  readonly retryAfterMs: number | null;
}

/** Reads the attempts of a lane's newest attempted deliveries, the oldest attempt first. */
export async function laneAttempts(
  queue: Pick<DeliveryReads, 'page' | 'get'>,
  prefix: string,
  { deliveries: most, maxRead } = READ,
): Promise<LaneAttempt[]> {
  const { deliveries } = await queue.page({ prefix }, { limit: maxRead, maxRead });
  const attempted = deliveries.filter(({ cycle, attemptsInCycle }) => attemptsInCycle > 0 || cycle > 1);
  const whole = await queue.get(attempted.slice(0, most));
  const found = whole.flatMap(({ id, attempts }) =>
    attempts.map((attempt) => {
      const { startedAtMs, durationMs, outcome } = attempt;
      const waits = { retryAfterMs: retryAfterMs(outcome, endOf(attempt)) };
      return {
        deliveryId: id,
        startedAtMs,
        durationMs,
        ok: outcome.ok,
        answer: shortAnswer(outcome),
        ...waits,
      };
    }),
  );
  return found.sort((a, b) => a.startedAtMs - b.startedAtMs);
}

/** Reads a lane's open deliveries and its pace, with the attempts by which the pace is judged. */
export async function readPace(
  parts: HeldParts & { readonly queue: Pick<DeliveryReads, 'page' | 'get'> },
  prefix: string,
) {
  const { queue, nowMs } = parts;
  const [attempts, backlog] = await Promise.all([
    laneAttempts(queue, prefix),
    shownBacklog(parts, { limit: MAX_COUNTED, prefix }),
  ]);
  return { attempts, backlog, pace: paceAnswer(backlog, attempts, nowMs) };
}

function paceAnswer({ underWay, waiting }: Backlog, attempts: readonly LaneAttempt[], nowMs: number) {
  const answered = attempts.filter(({ answer }) => /^\d/.test(answer)).map(({ durationMs }) => durationMs);
  const median = answered.sort((a, b) => a - b)[Math.floor(answered.length / 2)];
  const askedUntilMs = attempts.reduce(
    (until, { startedAtMs, durationMs, retryAfterMs }) =>
      retryAfterMs === null ? until : Math.max(until, startedAtMs + durationMs + retryAfterMs),
    nowMs,
  );
  return {
    under_way: underWay,
    answer_ms: median === undefined ? null : Math.round(median),
    waiting,
    asked_to_wait_until: askedUntilMs > nowMs ? formatDateTime(askedUntilMs) : null,
  };
}

/** The pace for people: a count that reached its limit says so. */
export function paceShown({ under_way, waiting, ...pace }: Awaited<ReturnType<typeof readPace>>['pace']) {
  const upTo = (count: number): number | string => (count < MAX_COUNTED ? count : `${count} or more`);
  return { ...pace, under_way: upTo(under_way), waiting: upTo(waiting) };
}
