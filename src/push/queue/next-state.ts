import type { RenderedRecord } from '../../../projections/transactions.ts';
import type { Attempt, AttemptOutcome, DeliveryReport, DeliveryState } from './delivery-queue.ts';

/** The reason of a delivery whose transaction must not be pushed any more. */
export const WITHDRAWN = 'the transaction was voided or cancelled';

/** The record of an erased transaction, and of a delivery that is enqueued after its withdrawal. */
export const NO_RECORD: RenderedRecord = {
  head: '',
  mobileNumber: null,
  fees: '',
  pump: null,
  odometer: null,
};

/** The fields of a delivery that change after it is stored. */
export interface DeliveryProgress {
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly endedAtMs: number | null;
  readonly cycle: number;
  readonly attemptsInCycle: number;
  readonly dueAtMs: number | null;
  /** The token of the last claim; `null` where that was reported, or the delivery is not pending. */
  readonly leaseToken: string | null;
}

/** What happens to a delivery. */
export type DeliveryChange =
  | DeliveryReport
  | { readonly kind: 'resume' }
  | { readonly kind: 'end lane'; readonly reason: string }
  | { readonly kind: 'withdraw' }
  /** `cycle` is the one in which the delivery was found. */
  | { readonly kind: 'redeliver'; readonly force: boolean; readonly cycle: number; readonly dueAtMs: number };

/** What a change sets. Every change ends the claim. Where neither is given, cycle and attempts stay. */
export type ChangedFields = Pick<DeliveryProgress, 'state' | 'reason' | 'endedAtMs' | 'dueAtMs'> &
  Partial<Pick<DeliveryProgress, 'cycle' | 'attemptsInCycle'>>;

/** One row of the table: a guarded update as data. A delivery takes the first one whose guard it meets. */
export interface Transition {
  readonly when: {
    readonly states: readonly DeliveryState[];
    readonly leaseToken?: string;
    readonly cycle?: number;
    readonly attemptsInCycle?: number;
  };
  /** `undefined`: the state stays as it is. */
  readonly set?: ChangedFields;
  /** Kept with the delivery as `keptAttempt` says, and counted in its cycle. */
  readonly attempt?: Attempt | undefined;
  /** What it does to the failure streak of the lane. */
  readonly streak?: 'end' | 'extend' | undefined;
}

/** Never empty; the first one is what the change expects. */
export type Transitions = readonly [Transition, ...Transition[]];

const OPEN_STATES: readonly DeliveryState[] = ['pending', 'held'];
const UNDELIVERED_STATES: readonly DeliveryState[] = ['pending', 'held', 'failed', 'withdrawn'];

/** The rules of every change, in the order in which they are tried. Both adapters carry out these and no others. */
export function transitionsOf(change: DeliveryChange, nowMs: number): Transitions {
  switch (change.kind) {
    case 'delivered': {
      // It counts in its cycle whatever the state and whoever has the claim: the receiver has the record.
      const when = { states: UNDELIVERED_STATES, cycle: change.attempt.cycle };
      const set = ended('delivered', null, endOf(change.attempt));
      return [{ when, set, attempt: change.attempt, streak: 'end' }];
    }
    case 'retry': {
      const { attempt, dueAtMs } = change;
      return [{ when: claimedBy(change), set: due(dueAtMs), attempt }, endedMeanwhile(attempt)];
    }
    case 'failed': {
      const { attempt, reason } = change;
      const when = claimedBy(change);
      if (attempt === null) return [{ when, set: ended('failed', reason, nowMs) }];
      const set = ended('failed', reason, endOf(attempt));
      return [{ when, set, attempt, streak: 'extend' }, endedMeanwhile(attempt)];
    }
    case 'held':
      return [{ when: claimedBy(change), set: HELD }];
    case 'released':
      return [{ when: claimedBy(change), set: due(nowMs) }];
    case 'resume':
      return [{ when: { states: ['held'] }, set: due(nowMs) }];
    case 'end lane':
      return [{ when: { states: OPEN_STATES }, set: ended('failed', change.reason, nowMs) }];
    case 'withdraw':
      return [{ when: { states: OPEN_STATES }, set: ended('withdrawn', WITHDRAWN, nowMs) }];
    case 'redeliver': {
      const { force, cycle, dueAtMs } = change;
      const when = { states: force ? (['failed', 'delivered'] as const) : (['failed'] as const), cycle };
      return [{ when, set: { ...due(dueAtMs), cycle: cycle + 1, attemptsInCycle: 0 } }];
    }
    default:
      return change satisfies never;
  }
}

/** A delivery after a change, with what is to be recorded beside it. */
export interface NextState {
  readonly progress: DeliveryProgress;
  readonly attempt: Transition['attempt'];
  readonly streak: Transition['streak'];
}

/** Applies a change; `undefined` where it changes nothing: another claim has the delivery, or it has ended. */
export function nextState(
  before: DeliveryProgress,
  change: DeliveryChange,
  nowMs: number,
): NextState | undefined {
  const transition = transitionsOf(change, nowMs).find(({ when }) => meets(before, when));
  if (transition === undefined) return undefined;
  const { set, attempt, streak } = transition;
  const { state, reason, endedAtMs, dueAtMs } = set ?? before;
  const cycle = set?.cycle ?? before.cycle;
  const attemptsInCycle = set?.attemptsInCycle ?? before.attemptsInCycle + (attempt === undefined ? 0 : 1);
  const progress = { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken: null };
  return { progress, attempt, streak };
}

/** An attempt as it is kept: of an erased transaction without the words of the receiver. */
export function keptAttempt(attempt: Attempt, isErased: boolean): Attempt {
  return isErased ? { ...attempt, outcome: withoutWords(attempt.outcome) } : attempt;
}

/** Why a delivery is not redelivered in this state; `undefined` where it is. */
export function redeliveryRefusal(
  state: DeliveryState,
  force: boolean,
): 'withdrawn' | 'pending' | 'delivered' | undefined {
  if (OPEN_STATES.includes(state)) return 'pending';
  if (state === 'withdrawn') return 'withdrawn';
  return state === 'delivered' && !force ? 'delivered' : undefined;
}

/** The outcome without the words of the receiver, which may repeat the record. */
export function withoutWords(outcome: AttemptOutcome): AttemptOutcome {
  if (outcome.answer === null) return outcome;
  return { ...outcome, answer: { status: outcome.answer.status, headers: {}, body: '' } };
}

/** The moment an attempt ended, in whole milliseconds. */
export function endOf({ startedAtMs, durationMs }: Attempt): number {
  return Math.round(startedAtMs + durationMs);
}

function meets(
  progress: DeliveryProgress,
  { states, leaseToken, cycle, attemptsInCycle }: Transition['when'],
): boolean {
  return (
    states.includes(progress.state) &&
    (leaseToken === undefined || leaseToken === progress.leaseToken) &&
    (cycle === undefined || cycle === progress.cycle) &&
    (attemptsInCycle === undefined || attemptsInCycle === progress.attemptsInCycle)
  );
}

/**
 * The failed attempt that was under way when its delivery ended for another reason is kept too, but is no part of
 * the failure streak.
 */
function endedMeanwhile(attempt: Attempt): Transition {
  const { cycle, number } = attempt;
  return { when: { states: ['failed', 'withdrawn'], cycle, attemptsInCycle: number - 1 }, attempt };
}

function claimedBy({ leaseToken }: { readonly leaseToken: string }): Transition['when'] {
  return { states: ['pending'], leaseToken };
}

const HELD = { state: 'held', reason: null, endedAtMs: null, dueAtMs: null } as const;

function due(dueAtMs: number) {
  return { state: 'pending', reason: null, endedAtMs: null, dueAtMs } as const;
}

function ended(state: 'delivered' | 'failed' | 'withdrawn', reason: string | null, endedAtMs: number) {
  return { state, reason, endedAtMs, dueAtMs: null } as const;
}
