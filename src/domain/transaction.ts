import { type Decision, record, refused, unchanged } from './decision.ts';
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

/**
 * Decides if an event may follow `state`: confirmed or external first, then voided or cancelled once, with the same
 * account. The same event again is `unchanged` (unknown fields count, the order of members does not). Anything else is
 * refused. The event must fit its schema.
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
  if (isRecorded(state, event)) return unchanged;
  if (isRecording(event)) return refusedRecording(state);
  if (state.kind === 'withdrawn') {
    return refused(`it was ${doneBy(state.withdrawal)} already, and that is final`);
  }
  const accountId = state.recording.data.account_id;
  if (accountId !== event.data.account_id) {
    return refused(`it belongs to account ${accountId}, not ${event.data.account_id}: name its own account`);
  }
  return record(event);
}

/**
 * Returns the state after one more event. An event that `decideTransaction` would refuse changes nothing, as in the
 * view. A withdrawal is final even if it comes first.
 */
export function evolveTransaction(state: TransactionState, event: TransactionEvent): TransactionState {
  if (isRecording(event)) return state.kind === 'none' ? { kind: 'recorded', recording: event } : state;
  if (state.kind === 'withdrawn') return state;
  if (state.kind === 'none') return { kind: 'withdrawn', recording: undefined, withdrawal: event };
  if (state.recording.data.account_id !== event.data.account_id) return state;
  return { kind: 'withdrawn', recording: state.recording, withdrawal: event };
}

function isRecording(event: TransactionEvent): event is Recording {
  return isRecordingType(event.type);
}

function isRecorded(state: Exclude<TransactionState, { kind: 'none' }>, event: TransactionEvent): boolean {
  if (same(state.recording, event)) return true;
  return state.kind === 'withdrawn' && same(state.withdrawal, event);
}

/** True if the event is the recorded one, or was before its driver was redacted. */
function same(recorded: TransactionEvent | undefined, event: TransactionEvent): boolean {
  if (recorded?.type !== event.type) return false;
  if (sameJson(recorded.data, event.data)) return true;
  return (
    isRecording(recorded) &&
    isRecording(event) &&
    isWithoutDriver(recorded.data) &&
    sameJson(recorded.data, withoutDriver(event.data))
  );
}

function refusedRecording(state: Exclude<TransactionState, { kind: 'none' }>): Decision<TransactionEvent> {
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
