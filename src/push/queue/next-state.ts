import type { Attempt, AttemptOutcome, DeliveryReport, DeliveryState, NewDelivery } from './delivery.ts';

/** The reason that a delivery of a withdrawn transaction has. */
const WITHDRAWN = 'the transaction was voided or cancelled';

/** The fields of a delivery that change after it is stored. */
export interface DeliveryProgress {
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly endedAtMs: number | null;
  readonly cycle: number;
  readonly attemptsInCycle: number;
  readonly dueAtMs: number | null;
  /** The token of the last claim; `null` if that was reported, or the delivery is not pending. */
  readonly leaseToken: string | null;
}

/** A change of a delivery that is not a report. */
type DeliveryChange =
  | { readonly kind: 'end lane'; readonly reason: string }
  | { readonly kind: 'withdraw' }
  | { readonly kind: 'redeliver'; readonly force: boolean; readonly dueAtMs: number };

/** A delivery after a change, and what has to be recorded with it. */
interface NextState {
  readonly progress: DeliveryProgress;
  /** The attempt to add, as `keptAttempt` returns it. */
  readonly attempt?: Attempt;
  /** How the failure streak of the lane changes. */
  readonly streak?: 'end' | 'extend';
}

/** The progress of a delivery that is stored for the first time: due when it was created, or claimed. */
export function newProgress(
  { createdAtMs }: Pick<NewDelivery, 'createdAtMs'>,
  lease?: { readonly token: string; readonly untilMs: number },
): DeliveryProgress {
  const open = { state: 'pending', reason: null, endedAtMs: null } as const;
  const due = { dueAtMs: lease?.untilMs ?? createdAtMs, leaseToken: lease?.token ?? null };
  return { ...open, cycle: 1, attemptsInCycle: 0, ...due };
}

/** Applies a change, which ends the claim. Returns `undefined` if it changes nothing: another claim has the delivery, or it has ended. */
export function nextState(
  before: DeliveryProgress,
  change: DeliveryReport | DeliveryChange,
  nowMs: number,
): NextState | undefined {
  switch (change.kind) {
    case 'delivered': {
      // The receiver has the record, so this counts in its cycle whatever the state is and whoever has the claim.
      const { attempt } = change;
      if (before.state === 'delivered' || before.cycle !== attempt.cycle) return undefined;
      const progress = ended(counted(before), 'delivered', { reason: null, atMs: endOf(attempt) });
      return { progress, attempt, streak: 'end' };
    }
    case 'retry': {
      const { attempt, dueAtMs } = change;
      if (!isClaimedBy(change, before)) return endedMeanwhile(before, attempt);
      return { progress: due(counted(before), dueAtMs), attempt };
    }
    case 'failed': {
      const { attempt, reason } = change;
      if (!isClaimedBy(change, before)) return attempt === null ? undefined : endedMeanwhile(before, attempt);
      if (attempt === null) return { progress: ended(before, 'failed', { reason, atMs: nowMs }) };
      const progress = ended(counted(before), 'failed', { reason, atMs: endOf(attempt) });
      return { progress, attempt, streak: 'extend' };
    }
    case 'released':
      return isClaimedBy(change, before) ? { progress: due(before, nowMs) } : undefined;
    case 'end lane': {
      const end = { reason: change.reason, atMs: nowMs };
      return isOpen(before) ? { progress: ended(before, 'failed', end) } : undefined;
    }
    case 'withdraw': {
      const end = { reason: WITHDRAWN, atMs: nowMs };
      return isOpen(before) ? { progress: ended(before, 'withdrawn', end) } : undefined;
    }
    case 'redeliver': {
      if (redeliveryRefusal(before.state, change.force) !== undefined) return undefined;
      const next = { ...before, cycle: before.cycle + 1, attemptsInCycle: 0 };
      return { progress: due(next, change.dueAtMs) };
    }
    default:
      return change satisfies never;
  }
}

/** An attempt as it is kept: without the receiver's words if the transaction was erased. */
export function keptAttempt(attempt: Attempt, isErased: boolean): Attempt {
  return isErased ? { ...attempt, outcome: withoutWords(attempt.outcome) } : attempt;
}

/** Returns the reason why a delivery in this state is not redelivered; `undefined` if it is. */
export function redeliveryRefusal(
  state: DeliveryState,
  force: boolean,
): 'withdrawn' | 'pending' | 'delivered' | undefined {
  if (isOpen({ state })) return 'pending';
  if (state === 'withdrawn') return 'withdrawn';
  return state === 'delivered' && !force ? 'delivered' : undefined;
}

/** True if the delivery has not ended yet. */
export function isOpen({ state }: Pick<DeliveryProgress, 'state'>): boolean {
  return state === 'pending';
}

/** The outcome without the receiver's words, which may repeat parts of the record. */
export function withoutWords(outcome: AttemptOutcome): AttemptOutcome {
  if (outcome.answer === null) return outcome;
  return { ...outcome, answer: { status: outcome.answer.status, headers: {}, body: '' } };
}

/** When an attempt ended, in whole milliseconds. */
export function endOf({ startedAtMs, durationMs }: Attempt): number {
  return Math.round(startedAtMs + durationMs);
}

function isClaimedBy({ leaseToken }: Pick<DeliveryReport, 'leaseToken'>, before: DeliveryProgress): boolean {
  return before.state === 'pending' && before.leaseToken === leaseToken;
}

/**
 * A failed attempt that was under way when its delivery ended for another reason is kept too, but the failure streak
 * does not count it.
 */
function endedMeanwhile(before: DeliveryProgress, attempt: Attempt): NextState | undefined {
  const { state, cycle, attemptsInCycle } = before;
  const isNext = cycle === attempt.cycle && attemptsInCycle === attempt.number - 1;
  return isNext && (state === 'failed' || state === 'withdrawn')
    ? { progress: counted(before), attempt }
    : undefined;
}

function counted(before: DeliveryProgress): DeliveryProgress {
  return { ...before, attemptsInCycle: before.attemptsInCycle + 1 };
}

function due(before: DeliveryProgress, dueAtMs: number): DeliveryProgress {
  return { ...before, state: 'pending', reason: null, endedAtMs: null, dueAtMs, leaseToken: null };
}

function ended(
  before: DeliveryProgress,
  state: 'delivered' | 'failed' | 'withdrawn',
  { reason, atMs }: { readonly reason: string | null; readonly atMs: number },
): DeliveryProgress {
  return { ...before, state, reason, endedAtMs: atMs, dueAtMs: null, leaseToken: null };
}
