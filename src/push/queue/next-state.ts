import type { RenderedRecord } from '../../../projections/record.ts';
import type { Attempt, AttemptOutcome, DeliveryReport, DeliveryState, NewDelivery } from './delivery.ts';

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

/** What happens to a delivery other than by a report. */
export type DeliveryChange =
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

const OPEN_STATES: readonly DeliveryState[] = ['pending', 'held'];
const UNDELIVERED_STATES: readonly DeliveryState[] = ['pending', 'held', 'failed', 'withdrawn'];

/** The rules of every report, in the order in which they are tried; the first one is what the report expects. */
export function transitionsOf(report: DeliveryReport, nowMs: number): readonly [Transition, ...Transition[]] {
  switch (report.kind) {
    case 'delivered': {
      // It counts in its cycle whatever the state and whoever has the claim: the receiver has the record.
      const { attempt } = report;
      const when = { states: UNDELIVERED_STATES, cycle: attempt.cycle };
      return [{ when, set: ended('delivered', null, endOf(attempt)), attempt, streak: 'end' }];
    }
    case 'retry': {
      const { attempt, dueAtMs } = report;
      return [{ when: claimedBy(report), set: due(dueAtMs), attempt }, endedMeanwhile(attempt)];
    }
    case 'failed': {
      const { attempt, reason } = report;
      const when = claimedBy(report);
      if (attempt === null) return [{ when, set: ended('failed', reason, nowMs) }];
      const set = ended('failed', reason, endOf(attempt));
      return [{ when, set, attempt, streak: 'extend' }, endedMeanwhile(attempt)];
    }
    case 'held':
      return [{ when: claimedBy(report), set: HELD }];
    case 'released':
      return [{ when: claimedBy(report), set: due(nowMs) }];
    default:
      return report satisfies never;
  }
}

/** The rule of every other change. */
export function transitionOf(
  change: DeliveryChange,
  nowMs: number,
): Transition & Required<Pick<Transition, 'set'>> {
  switch (change.kind) {
    case 'resume':
      return { when: { states: ['held'] }, set: due(nowMs) };
    case 'end lane':
      return { when: { states: OPEN_STATES }, set: ended('failed', change.reason, nowMs) };
    case 'withdraw':
      return { when: { states: OPEN_STATES }, set: ended('withdrawn', WITHDRAWN, nowMs) };
    case 'redeliver': {
      const { force, cycle, dueAtMs } = change;
      const when = { states: force ? (['failed', 'delivered'] as const) : (['failed'] as const), cycle };
      return { when, set: { ...due(dueAtMs), cycle: cycle + 1, attemptsInCycle: 0 } };
    }
    default:
      return change satisfies never;
  }
}

/** A delivery as it is stored first: due when it was created, or claimed, or withdrawn already. */
export function newProgress(
  { createdAtMs }: Pick<NewDelivery, 'createdAtMs'>,
  how?: 'withdrawn' | { readonly token: string; readonly untilMs: number },
): DeliveryProgress {
  const first = { cycle: 1, attemptsInCycle: 0, leaseToken: null };
  if (how === 'withdrawn') return { ...first, ...ended('withdrawn', WITHDRAWN, createdAtMs) };
  return { ...first, ...due(how?.untilMs ?? createdAtMs), leaseToken: how?.token ?? null };
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
  change: DeliveryReport | DeliveryChange,
  nowMs: number,
): NextState | undefined {
  const transitions = 'leaseToken' in change ? transitionsOf(change, nowMs) : [transitionOf(change, nowMs)];
  const transition = transitions.find(({ when }) => meets(before, when));
  if (transition === undefined) return undefined;
  const { set, attempt, streak } = transition;
  const { state, reason, endedAtMs, dueAtMs } = set ?? before;
  const cycle = set?.cycle ?? before.cycle;
  const attemptsInCycle = set?.attemptsInCycle ?? before.attemptsInCycle + (attempt === undefined ? 0 : 1);
  const progress = { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken: null };
  return { progress, attempt, streak };
}

/** An attempt as it is kept with a record: of an erased transaction without the words of the receiver. */
export function keptAttempt(attempt: Attempt, { head }: Pick<RenderedRecord, 'head'>): Attempt {
  return head === NO_RECORD.head ? { ...attempt, outcome: withoutWords(attempt.outcome) } : attempt;
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
