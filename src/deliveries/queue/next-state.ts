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
    /** Whether its record was erased. */
    readonly erased?: boolean;
  };
  /** `undefined`: the state stays as it is. */
  readonly set?: ChangedFields;
  /** Kept with the delivery, and counted in its cycle. */
  readonly attempt?: Attempt;
  /** What it does to the failure streak of the lane. */
  readonly streak?: 'end' | 'extend';
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
      return recorded(change.attempt, { when, set, streak: 'end' });
    }
    case 'retry': {
      const own = { when: claimedBy(change), set: due(change.dueAtMs) };
      return [...recorded(change.attempt, own), ...endedMeanwhile(change.attempt)];
    }
    case 'failed': {
      const { attempt, reason } = change;
      const when = claimedBy(change);
      if (attempt === null) return [{ when, set: ended('failed', reason, nowMs) }];
      const set = ended('failed', reason, endOf(attempt));
      return [...recorded(attempt, { when, set, streak: 'extend' }), ...endedMeanwhile(attempt)];
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

/** A delivery as a change finds it. */
export interface CurrentState {
  readonly progress: DeliveryProgress;
  readonly isErased: boolean;
}

/** A delivery after a change, with what is to be recorded beside it. */
export interface NextState extends Pick<Transition, 'attempt' | 'streak'> {
  readonly progress: DeliveryProgress;
}

/** Applies a change; `undefined` where it changes nothing: another claim has the delivery, or it has ended. */
export function nextState(
  delivery: CurrentState,
  change: DeliveryChange,
  nowMs: number,
): NextState | undefined {
  const transition = transitionsOf(change, nowMs).find(({ when }) => meets(delivery, when));
  if (transition === undefined) return undefined;
  const { progress } = delivery;
  const attemptsInCycle = progress.attemptsInCycle + (transition.attempt === undefined ? 0 : 1);
  return { ...transition, progress: { ...progress, attemptsInCycle, ...transition.set, leaseToken: null } };
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
  { progress, isErased }: CurrentState,
  { states, leaseToken, cycle, attemptsInCycle, erased }: Transition['when'],
): boolean {
  return (
    states.includes(progress.state) &&
    (leaseToken === undefined || leaseToken === progress.leaseToken) &&
    (cycle === undefined || cycle === progress.cycle) &&
    (attemptsInCycle === undefined || attemptsInCycle === progress.attemptsInCycle) &&
    (erased === undefined || erased === isErased)
  );
}

/** Keeps the attempt with the transition; of an erased transaction without the words of the receiver. */
function recorded(attempt: Attempt, transition: Transition): Transitions {
  const { when } = transition;
  const short = { ...attempt, outcome: withoutWords(attempt.outcome) };
  return [
    { ...transition, when: { ...when, erased: false }, attempt },
    { ...transition, when: { ...when, erased: true }, attempt: short },
  ];
}

/**
 * The failed attempt that was under way when its delivery ended for another reason is kept too, but is no part of
 * the failure streak.
 */
function endedMeanwhile(attempt: Attempt): Transitions {
  const { cycle, number } = attempt;
  return recorded(attempt, { when: { states: ['failed', 'withdrawn'], cycle, attemptsInCycle: number - 1 } });
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
