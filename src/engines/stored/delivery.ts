import { jsonBytes, MAX_BATCH_BYTES } from '../../event-store/batch-bytes.ts';
import {
  type Attempt,
  type AttemptOutcome,
  type ClaimedDelivery,
  DELIVERY_STATES,
  type Delivery,
  type NewDelivery,
  type StoredDelivery,
  type WebhookHealth,
} from '../../push/queue/delivery.ts';
import type {
  DeliveryPlace,
  DeliverySummary,
  LaneAttempt,
  LoggedDelivery,
} from '../../push/queue/delivery-reads.ts';
import { shortAnswer } from '../../push/queue/failure-streak.ts';
import type { DeliveryProgress } from '../../push/queue/next-state.ts';

const MAX_STORED = 500;

/** A row or document as an engine returns it. What is absent is `null`. */
export type Row = Readonly<Record<string, unknown>>;
type Names<T> = Readonly<Record<keyof T, string>>;
type Identity = Omit<NewDelivery, 'record'>;

/** The names under which every engine stores what a delivery is made of. */
export const IDENTITY: Names<Identity> = {
  id: 'id',
  prefix: 'prefix',
  accountId: 'account_id',
  transactionId: 'transaction_id',
  type: 'type',
  createdAtMs: 'created_at',
  position: 'position',
  recordedAtMs: 'recorded_at',
};
export const PROGRESS: Names<DeliveryProgress> = {
  state: 'state',
  reason: 'reason',
  endedAtMs: 'ended_at',
  cycle: 'cycle',
  attemptsInCycle: 'attempts_in_cycle',
  dueAtMs: 'due_at',
  leaseToken: 'lease',
};
export const RECORD: Names<NewDelivery['record']> = {
  head: 'head',
  mobileNumber: 'mobile_number',
  fees: 'fees',
  pump: 'pump',
  odometer: 'odometer',
};
export const ATTEMPT: Names<Attempt> = {
  cycle: 'cycle',
  number: 'number',
  startedAtMs: 'started_at',
  durationMs: 'duration',
  outcome: 'outcome', // JSON: a receiver's header names may be anything
};
export const STREAK: Names<WebhookHealth> = {
  failedInARow: 'failed_in_a_row',
  failingSinceMs: 'failing_since',
  lastAnswers: 'last_answers',
};
const { endedAtMs: _, leaseToken: __, ...shown } = PROGRESS;
export const SUMMARY: Names<DeliverySummary> = { ...IDENTITY, ...shown };
const { id, prefix, accountId, transactionId, recordedAtMs } = IDENTITY;
export const LOGGED: Names<LoggedDelivery> = {
  ...{ id, prefix, accountId, transactionId, recordedAtMs },
  state: 'state',
  cycle: 'cycle',
};

/** The values under their stored names. */
export function toStored<T extends object>(names: Names<T>, value: T): Record<string, unknown> {
  const stored: Record<string, unknown> = {};
  for (const name in names) stored[names[name]] = value[name];
  return stored;
}

/** The values of a row under the port's names. */
export function fromStored<T>(names: Names<T>, row: Row): T {
  const found: Partial<Record<keyof T, unknown>> = {};
  for (const name in names) found[name] = row[names[name]] ?? null;
  return found as T;
}

export function toSummary(row: Row): DeliverySummary {
  return withKnownState(fromStored(SUMMARY, row));
}

export function toLogged(row: Row): LoggedDelivery {
  return withKnownState(fromStored(LOGGED, row));
}

export function toProgress(row: Row): DeliveryProgress {
  return withKnownState(fromStored(PROGRESS, row));
}

export function toDelivery(row: Row, record: Row, attempts: readonly Row[]): Delivery {
  return { ...toSummary(row), record: fromStored(RECORD, record), attempts: attempts.map(toAttempt) };
}

export function toStoredDelivery(...rows: Parameters<typeof toDelivery>): StoredDelivery {
  return { ...toDelivery(...rows), endedAtMs: toProgress(rows[0]).endedAtMs };
}

/** The order of `page`. */
export function newestFirst(a: DeliveryPlace, b: DeliveryPlace): number {
  return b.createdAtMs - a.createdAtMs || (b.id < a.id ? -1 : b.id > a.id ? 1 : 0);
}

/** Collects what `storedAfter` returns from deliveries that come by transaction. */
export class StoredBatch {
  readonly deliveries: StoredDelivery[] = [];
  #bytes = 0;

  /** False where it is full: the delivery belongs to the next batch. */
  take(delivery: StoredDelivery): boolean {
    const isFull = this.deliveries.length >= MAX_STORED || this.#bytes >= MAX_BATCH_BYTES;
    if (isFull && delivery.transactionId !== this.deliveries.at(-1)?.transactionId) return false;
    this.deliveries.push(delivery);
    this.#bytes += jsonBytes(delivery);
    return true;
  }
}

export function toClaimed(row: Row, record: Row, leaseToken: string): ClaimedDelivery {
  const { cycle, attemptsInCycle } = toProgress(row);
  const attemptNumber = attemptsInCycle + 1;
  return {
    ...fromStored<Identity>(IDENTITY, row),
    record: fromStored(RECORD, record),
    cycle,
    attemptNumber,
    leaseToken,
  };
}

/** An attempt's values under their stored names. */
export function storedAttempt(attempt: Attempt): Record<string, unknown> {
  return { ...toStored(ATTEMPT, attempt), outcome: JSON.stringify(attempt.outcome) };
}

export function toLaneAttempt(deliveryId: string, row: Row): LaneAttempt {
  const { startedAtMs, durationMs, outcome } = toAttempt(row);
  return { deliveryId, startedAtMs, durationMs, ok: outcome.ok, answer: shortAnswer(outcome) };
}

function toAttempt(row: Row): Attempt {
  return { ...fromStored(ATTEMPT, row), outcome: JSON.parse(row.outcome as string) as AttemptOutcome };
}

/** A state that this version does not know must not pass for another. */
function withKnownState<T extends Pick<DeliveryProgress, 'state'>>(found: T): T {
  if (!DELIVERY_STATES.includes(found.state))
    throw new Error(`a delivery is stored in the unknown state ${found.state}`);
  return found;
}

/** The first and the last cycle of those that were redelivered, or were not; `undefined`: of all. */
export function cyclesOf(redelivered: boolean | undefined): readonly [from: number, to: number] {
  return [redelivered === true ? 2 : 1, redelivered === false ? 1 : Number.MAX_SAFE_INTEGER];
}
