import type {
  Attempt,
  AttemptOutcome,
  ClaimedDelivery,
  Delivery,
  DeliveryState,
  DeliverySummary,
  NewDelivery,
} from '../../../push/queue/delivery-queue.ts';
import type { DeliveryProgress } from '../../../push/queue/next-state.ts';

export type Row = Readonly<Record<string, unknown>>;

/** The columns of a summary, under the port's names. */
export const SUMMARY_COLUMNS = `id, prefix, account_id AS accountId, transaction_id AS transactionId, type,
  created_at AS createdAtMs, position, recorded_at AS recordedAtMs, state, reason, cycle,
  attempts_in_cycle AS attemptsInCycle, due_at AS dueAtMs`;

export const RECORD_COLUMNS = 'head, mobile_number AS mobileNumber, fees, pump, odometer';

export function toSummary(row: Row): DeliverySummary {
  return {
    ...toIdentity(row),
    state: row.state as DeliveryState,
    reason: row.reason as string | null,
    cycle: row.cycle as number,
    attemptsInCycle: row.attemptsInCycle as number,
    dueAtMs: row.dueAtMs as number | null,
  };
}

/** From a row of both the summary's and the record's columns, as is `toDelivery`. */
export function toClaimed(row: Row, leaseToken: string): ClaimedDelivery {
  const attemptNumber = (row.attemptsInCycle as number) + 1;
  return { ...toIdentity(row), record: toRecord(row), cycle: row.cycle as number, attemptNumber, leaseToken };
}

export function toDelivery(row: Row, attempts: readonly Attempt[]): Delivery {
  return { ...toSummary(row), record: toRecord(row), attempts };
}

function toIdentity(row: Row): Omit<NewDelivery, 'record'> {
  return {
    id: row.id as string,
    prefix: row.prefix as string,
    accountId: row.accountId as number,
    transactionId: row.transactionId as number,
    type: row.type as NewDelivery['type'],
    createdAtMs: row.createdAtMs as number,
    position: row.position as number,
    recordedAtMs: row.recordedAtMs as number,
  };
}

function toRecord(row: Row): NewDelivery['record'] {
  return {
    head: row.head as string,
    mobileNumber: row.mobileNumber as string | null,
    fees: row.fees as string,
    pump: row.pump as string | null,
    odometer: row.odometer as string | null,
  };
}

export function toAttempt(row: Row): Attempt {
  return {
    cycle: row.cycle as number,
    number: row.number as number,
    startedAtMs: row.started_at as number,
    durationMs: row.duration as number,
    outcome: JSON.parse(row.outcome as string) as AttemptOutcome,
  };
}

/** An attempt's values in the order of its insertion. */
export function attemptValues(attempt: Attempt): [number, number, number, number, string] {
  const { cycle, number, startedAtMs, durationMs, outcome } = attempt;
  return [cycle, number, startedAtMs, durationMs, JSON.stringify(outcome)];
}

/** What a change of a delivery is decided by, and what it takes to carry it out. */
export interface ProgressRow extends DeliveryProgress {
  readonly seq: number;
  readonly prefix: string;
  readonly transactionId: number;
  /** 1 where its record was erased; read only for reports, which may keep an attempt. */
  readonly isErased?: number;
}
