import { type Decision, type Refused, record, refused, type Unchanged, unchanged } from './decision.ts';
import { isRecordingType, type RecordingType, type TransactionEvent } from './transaction-events.ts';
import { sameJson } from './values/same-json.ts';

type Recording = Extract<TransactionEvent, { type: RecordingType }>;
type Withdrawal = Exclude<TransactionEvent, Recording>;

/** A transaction as the events of its stream make it. */
export type TransactionState =
  | { readonly kind: 'none' }
  | { readonly kind: 'recorded'; readonly recording: Recording }
  | {
      readonly kind: 'withdrawn';
      /** Missing only if the stream begins with its withdrawal, which this service never writes. */
      readonly recording: Recording | undefined;
      readonly withdrawal: Withdrawal;
    };

export const NO_TRANSACTION: TransactionState = { kind: 'none' };

/** The effect of an event on a transaction: it leads to another state, changes nothing, or can't follow the events before it. */
export type Judgement =
  | { readonly kind: 'applied'; readonly state: Exclude<TransactionState, { kind: 'none' }> }
  | Unchanged
  | Refused;

/**
 * Judges an event of a transaction's stream by the state that the events before it have made: confirmed or external first,
 * then voided or cancelled once, with the same account. The same event again is `unchanged` (unknown fields count, the order
 * of members does not). A withdrawal is final even if it comes first. The event must fit its schema.
 */
export function judgeTransaction(state: TransactionState, event: TransactionEvent): Judgement {
  if (state.kind === 'none') {
    return isRecording(event)
      ? { kind: 'applied', state: { kind: 'recorded', recording: event } }
      : { kind: 'applied', state: { kind: 'withdrawn', recording: undefined, withdrawal: event } };
  }
  const { recording } = state;
  if (isSame(recording, event) || (state.kind === 'withdrawn' && isSame(state.withdrawal, event)))
    return unchanged;
  // An engine that can't change events records a redacted transaction again, at the end of its stream.
  if (isRecording(event) && isRedactionOf(recording, event)) {
    return state.kind === 'withdrawn'
      ? unchanged
      : { kind: 'applied', state: { kind: 'recorded', recording: event } };
  }
  if (isRecording(event)) return refusedRecording(state);
  if (state.kind === 'withdrawn') {
    return refused(`it was ${doneBy(state.withdrawal)} already, and that is final`);
  }
  const accountId = state.recording.data.account_id;
  if (accountId !== event.data.account_id) {
    return refused(`it belongs to account ${accountId}, not ${event.data.account_id}: name its own account`);
  }
  return { kind: 'applied', state: { kind: 'withdrawn', recording: state.recording, withdrawal: event } };
}

/**
 * Decides if an event may be recorded. Of what a stream may have, a command records neither the withdrawal of a transaction that
 * was never recorded nor a redaction.
 */
export function decideTransaction(
  event: TransactionEvent,
  state: TransactionState,
): Decision<TransactionEvent> {
  if (state.kind === 'none') {
    return isRecording(event)
      ? record(event)
      : refused('it was never recorded: record it as confirmed or external first');
  }
  const judged = judgeTransaction(state, event);
  if (judged.kind !== 'applied') return judged;
  return isRecording(event) ? refusedRecording(state) : record(event);
}

/** Returns the state after one more event. One that is unchanged or refused changes nothing. */
export function evolveTransaction(state: TransactionState, event: TransactionEvent): TransactionState {
  const judged = judgeTransaction(state, event);
  return judged.kind === 'applied' ? judged.state : state;
}

function isRecording(event: TransactionEvent): event is Recording {
  return isRecordingType(event.type);
}

/** True if the event is the recorded one, or was before its driver was redacted. */
function isSame(recorded: TransactionEvent | undefined, event: TransactionEvent): boolean {
  if (recorded?.type !== event.type) return false;
  return sameJson(recorded.data, event.data) || isRedactionOf(event, recorded);
}

/** True if one event is the other without its driver. */
function isRedactionOf(other: TransactionEvent | undefined, event: TransactionEvent): boolean {
  return (
    other?.type === event.type &&
    isRecording(other) &&
    isRecording(event) &&
    isWithoutDriver(event.data) &&
    sameJson(event.data, withoutDriver(other.data))
  );
}

function refusedRecording(state: Exclude<TransactionState, { kind: 'none' }>): Refused {
  if (state.kind === 'withdrawn') {
    return refused(`it was ${doneBy(state.withdrawal)}, and that is final: give a new transaction a new id`);
  }
  return refused(
    `it was recorded before as ${state.recording.type} with other content: a record never changes, ` +
      'so give a new transaction a new id',
  );
}

function doneBy(withdrawal: Withdrawal): string {
  return withdrawal.type === 'TransactionVoided' ? 'voided' : 'cancelled';
}

/** Replaces a driver's name once the driver has been redacted. */
export const REDACTED = 'REDACTED';

/** The driver in the data of an event. */
export interface WithDriver {
  readonly driver: {
    readonly id: number;
    readonly name: string;
    readonly mobile_number?: string | null | undefined;
  };
}

/** Returns the record with only the driver's id: name, number and any other member of the driver are removed. */
export function withoutDriver<Data extends WithDriver>(data: Data): Data {
  return { ...data, driver: { id: data.driver.id, name: REDACTED, mobile_number: null } };
}

export function isWithoutDriver({ driver }: WithDriver): boolean {
  return driver.name === REDACTED && (driver.mobile_number ?? null) === null;
}
