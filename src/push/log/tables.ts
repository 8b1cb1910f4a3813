import { assertRecord, NO_RECORD } from '../../../projections/record.ts';
import type { Clock } from '../../base/clock.ts';
import type { TransactionWebhookType } from '../../domain/transaction-events.ts';
import { type RowOf, type StorePlan, tablePlan } from '../../tables/plan.ts';
import {
  type Attempt,
  type ClaimedDelivery,
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  type DeliverySummary,
  type NewDelivery,
  type OwedKey,
} from '../queue/delivery.ts';
import { type DeliveryProgress, nextState } from '../queue/next-state.ts';

/**
 * One row for each delivery. Only `changes.ts` and `claim.ts` change it, and write it if its version is as it was read.
 * Large values are aside, so that a change of state rewrites neither the record nor the attempts.
 */
export const DELIVERIES = tablePlan({
  name: 'deliveries',
  key: 'owed',
  columns: {
    owed: 'text', // the transaction and the webhook, as `owedOf` joins them
    id: 'text',
    id_part: 'integer',
    prefix: 'text',
    account_id: 'integer',
    transaction_id: 'integer',
    type: 'text',
    created_at: 'time',
    position: 'integer',
    recorded_at: 'time',
    state: 'text',
    reason: 'text?',
    ended_at: 'time?',
    cycle: 'integer',
    attempts_in_cycle: 'integer',
    due_at: 'time?', // when the next attempt is due, or the lease ends
    lease: 'text?',
    claimed: 'integer', // 1 while there is a lease
    sought_state: 'text?', // the state if operators look for it among millions of delivered ones
    erased: 'integer', // 1 once the record is empty
    version: 'integer',
    record: 'text',
    attempts: 'text?', // JSON
  },
  aside: ['record', 'attempts'],
  indexes: {
    by_id: ['id_part', 'id'],
    by_transaction: ['transaction_id'],
    due: ['claimed', 'due_at'],
    due_in_lane: ['prefix', 'due_at'],
    ended: ['ended_at'],
    by_time: ['created_at'],
    by_lane: ['prefix', 'created_at'],
    by_state: ['sought_state', 'created_at'],
  },
});

/** One row for each webhook that has had a delivery: its account and its failure streak. */
export const LANES = tablePlan({
  name: 'lanes',
  key: 'prefix',
  columns: {
    prefix: 'text',
    account_id: 'integer',
    version: 'integer',
    enabled_at: 'time', // earlier failures do not count
    timed_from: 'time', // the streak's time begins with the first failure after this
    failed_in_a_row: 'integer?',
    failures: 'text', // JSON
  },
  indexes: { of_account: ['account_id'], failing: ['failed_in_a_row'] },
});

/** Transactions that must not be pushed any more, whether they have deliveries or not. */
export const WITHDRAWALS = tablePlan({
  name: 'withdrawals',
  key: 'transaction_id',
  columns: { transaction_id: 'integer', made_at: 'time' },
  indexes: { by_time: ['made_at'] },
});

/** One row: the log's name. */
export const LOG = tablePlan({
  name: 'delivery_log',
  key: 'only',
  columns: { only: 'text', id: 'text', started_at: 'time' },
  indexes: {},
});

export const DELIVERY_STORE: StorePlan = {
  name: 'deliveries',
  version: 2,
  tables: [DELIVERIES, LANES, WITHDRAWALS, LOG],
  durability: 'full',
  withinMs: 5_000, // as long as a lease: a later answer would be useless
  pageBytes: 4096, // a delivery changes a little in many places, and each page is written whole
  cacheMiB: 8, // the inner pages of its indexes, and the leaves in use
};

export type StoredRow = RowOf<typeof DELIVERIES>;
/** A row without the columns that are aside. */
export type DeliveryRow = Omit<StoredRow, 'record' | 'attempts'>;
export type LaneRow = RowOf<typeof LANES>;

export const ALL_COLUMNS = Object.keys(DELIVERIES.columns) as (keyof StoredRow)[];

/** Deliveries in one part of the index of ids. */
const PART = 1_000;
/** The states that operators look for. */
export const SOUGHT_STATES: readonly DeliveryState[] = ['failed', 'withdrawn'];

export function newRow(delivery: NewDelivery, progress: DeliveryProgress, part: number): StoredRow {
  const { id, prefix, accountId, transactionId, type, createdAtMs, position, occurredAtMs, record } =
    delivery;
  return {
    owed: owedOf(delivery),
    id,
    id_part: part,
    prefix,
    account_id: accountId,
    transaction_id: transactionId,
    type,
    position,
    created_at: createdAtMs,
    recorded_at: occurredAtMs,
    ...toColumns(progress),
    erased: record === NO_RECORD ? 1 : 0,
    version: 1,
    record,
    attempts: null,
  };
}

/** The key of a delivery's row. */
export function owedOf({ transactionId, prefix }: OwedKey): string {
  return `${transactionId}/${prefix}`;
}

/**
 * Numbers the parts of the index of ids. Ids are random, so an index of them alone would write another page for each
 * delivery. Instead each thousand deliveries of a process are a part of a few pages, and finding an id searches each part.
 */
export function partsOf(clock: Clock): (deliveries: number) => number {
  let [part, stored] = [clock.now(), 0];
  return (deliveries) => {
    if (stored >= PART) [part, stored] = [Math.max(part + 1, clock.now()), 0];
    stored += deliveries;
    return part;
  };
}

/** The columns of a delivery's progress. */
export function toColumns(progress: DeliveryProgress) {
  const { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken } = progress;
  return {
    state,
    reason,
    ended_at: endedAtMs,
    cycle,
    attempts_in_cycle: attemptsInCycle,
    due_at: dueAtMs,
    lease: leaseToken,
    claimed: leaseToken === null ? 0 : 1,
    sought_state: SOUGHT_STATES.includes(state) ? state : null,
  };
}

/** The columns that a change sets; `undefined` if it changes nothing. */
export function columnsAfter(row: DeliveryRow, ...change: ChangeAt) {
  const next = nextState(progressOf(row), ...change);
  return next && toColumns(next.progress);
}

type ChangeAt = Parameters<typeof nextState> extends [unknown, ...infer Rest] ? Rest : never;

export function progressOf(row: DeliveryRow): DeliveryProgress {
  const { reason, ended_at, cycle, attempts_in_cycle, due_at, lease } = row;
  const rest = { reason, endedAtMs: ended_at, cycle, attemptsInCycle: attempts_in_cycle };
  return { state: stateOf(row), ...rest, dueAtMs: due_at, leaseToken: lease };
}

export function summaryOf(row: DeliveryRow): DeliverySummary {
  const { reason, cycle, attempts_in_cycle: attemptsInCycle, due_at: dueAtMs } = row;
  return { ...identityOf(row), state: stateOf(row), reason, cycle, attemptsInCycle, dueAtMs };
}

export function deliveryOf(row: StoredRow): Delivery {
  return { ...summaryOf(row), record: recordOf(row), attempts: attemptsOf(row) };
}

export function claimedOf(row: DeliveryRow & Pick<StoredRow, 'record'>, leaseToken: string): ClaimedDelivery {
  const { cycle, attempts_in_cycle } = row;
  return {
    ...identityOf(row),
    record: recordOf(row),
    cycle,
    attemptNumber: attempts_in_cycle + 1,
    leaseToken,
  };
}

/** Throws for a record in the form of an earlier build: its delivery would otherwise end as one that can't be sent. */
export function recordOf({ record }: Pick<StoredRow, 'record'>): string {
  assertRecord(record);
  return record;
}

export function attemptsOf({ attempts }: Pick<StoredRow, 'attempts'>): Attempt[] {
  return attempts === null ? [] : (JSON.parse(attempts) as Attempt[]);
}

/** Reads the state. A state that this version does not know must not be taken for another. */
export function stateOf({ state }: Pick<DeliveryRow, 'state'>): DeliveryState {
  const known = DELIVERY_STATES.find((each) => each === state);
  if (known === undefined) throw new Error(`a delivery is stored in the unknown state ${state}`);
  return known;
}

function identityOf(row: DeliveryRow) {
  const { id, prefix, account_id, transaction_id, type, created_at, position, recorded_at } = row;
  return {
    id,
    prefix,
    accountId: account_id,
    transactionId: transaction_id,
    type: type as TransactionWebhookType,
    createdAtMs: created_at,
    position,
    occurredAtMs: recorded_at,
  };
}
