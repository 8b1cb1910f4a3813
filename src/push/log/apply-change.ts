import { NO_RECORD, redactedRecord } from '../../../projections/record.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { removeRows } from '../../tables/remove-rows.ts';
import type { Selection, Tables } from '../../tables/tables.ts';
import type { OwedKey } from '../queue/delivery.ts';
import type { DeliveryQueue, QueueChange } from '../queue/delivery-queue.ts';
import { reset } from '../queue/failure-streak.ts';
import { redeliveryRefusal, withoutWords } from '../queue/next-state.ts';
import { blocksOf, changeEach, keysOf } from './changes.ts';
import { changeStreaks } from './streaks.ts';
import {
  ALL_COLUMNS,
  attemptsOf,
  columnsAfter,
  DELIVERIES,
  type DeliveryRow,
  owedOf,
  type StoredRow,
  stateOf,
  WITHDRAWALS,
} from './tables.ts';
import { endWithdrawn, markWithdrawn, ofTransactions } from './withdrawals.ts';

/** How far the clocks of those who record, store and withdraw may differ. */
const CLOCK_SKEW_MS = DAY_MS;

/** Implements `DeliveryQueue.change`. */
export async function applyChange(tables: Tables, change: QueueChange, nowMs: number): Promise<number> {
  switch (change.kind) {
    case 'enabled':
      await changeStreaks(tables, [change.prefix], (streak) => reset(streak, change.atMs));
      return 0;
    case 'erase':
      await changeOpen(tables, { kind: 'withdraw', transactionIds: [change.transactionId] }, nowMs);
      return rewriteRecords(tables, change.transactionId, () => NO_RECORD);
    case 'redact':
      return rewriteRecords(tables, change.transactionId, redactedRecord);
    case 'purge':
      return purge(tables, nowMs - change.retentionMs, change.limit);
    default:
      return changeOpen(tables, change, nowMs);
  }
}

type OpenChange = Extract<QueueChange, { readonly kind: 'end lane' | 'withdraw' }>;

/** Changes the open deliveries of a lane or some transactions, each at most once, and returns how many. */
async function changeOpen(tables: Tables, change: OpenChange, nowMs: number): Promise<number> {
  // The mark comes first: whoever makes a delivery due looks for it afterwards.
  if (change.kind === 'withdraw') await markWithdrawn(tables, change.transactionIds, nowMs);
  let count = 0;
  for (const selection of selectionsOf(change)) {
    for await (const block of blocksOf(tables, selection)) {
      const affected = block.filter((row) => isAffected(row, change));
      if (affected.length === 0) continue;
      const which = { table: DELIVERIES, keys: keysOf(affected) };
      const changed = await changeEach<DeliveryRow>(tables, which, (row) =>
        isAffected(row, change) ? columnsAfter(row, change, nowMs) : undefined,
      );
      count += changed.length;
    }
  }
  return count;
}

function selectionsOf(change: OpenChange): Iterable<Selection<typeof DELIVERIES>> {
  switch (change.kind) {
    case 'end lane':
      return [{ index: 'due_in_lane', equals: { prefix: change.prefix } }];
    case 'withdraw':
      return ofTransactions(change.transactionIds);
    default:
      return change satisfies never;
  }
}

function isAffected({ position, cycle }: DeliveryRow, change: OpenChange): boolean {
  if (change.kind !== 'end lane') return true;
  const { before = Number.POSITIVE_INFINITY, redelivered } = change;
  return position < before && (redelivered === undefined || redelivered === cycle > 1);
}

/** Changes the records of a transaction's deliveries, and removes the receivers' words, which may repeat the record. */
async function rewriteRecords(
  tables: Tables,
  transactionId: number,
  rewrite: (record: string) => string,
): Promise<number> {
  let count = 0;
  for (const selection of ofTransactions([transactionId])) {
    for await (const block of blocksOf(tables, selection)) {
      const which = { table: DELIVERIES, keys: keysOf(block), columns: ALL_COLUMNS };
      count += (await changeEach<StoredRow>(tables, which, (row) => rewritten(row, rewrite))).length;
    }
  }
  return count;
}

function rewritten(row: StoredRow, rewrite: (record: string) => string): Partial<StoredRow> | undefined {
  const record = rewrite(row.record);
  if (record === row.record) return undefined;
  const silent = attemptsOf(row).map((each) => ({ ...each, outcome: withoutWords(each.outcome) }));
  return {
    record,
    erased: record === NO_RECORD ? 1 : 0,
    attempts: silent.length === 0 ? null : JSON.stringify(silent),
  };
}

async function purge(tables: Tables, endedBeforeMs: number, limit: number): Promise<number> {
  const ended = { index: 'ended', range: { to: endedBeforeMs - 1 } } as const;
  const made = { index: 'by_time', range: { to: endedBeforeMs - CLOCK_SKEW_MS - 1 } } as const;
  const deliveries = await removeRows(tables, DELIVERIES, ended, limit);
  return deliveries + (await removeRows(tables, WITHDRAWALS, made, limit));
}

type Outcome = Awaited<ReturnType<DeliveryQueue['redeliver']>>;

/**
 * Implements `DeliveryQueue.redeliver`. Withdrawals are looked for once more after the delivery was made due, so that
 * a withdrawal at the same time ends it in either order.
 */
export async function redeliver(
  tables: Tables,
  delivery: OwedKey,
  { force, dueAtMs }: { readonly force: boolean; readonly dueAtMs: number },
): Promise<Outcome> {
  const keys = [owedOf(delivery)];
  const [found] = await tables.get(DELIVERIES, keys, ['owed']);
  if (found === undefined) return 'not known';
  const isWithdrawn = async () => (await endWithdrawn(tables, [delivery.transactionId])).size > 0;
  if (await isWithdrawn()) return 'withdrawn';
  let refusal: Outcome | undefined;
  const changed = await changeEach<DeliveryRow>(tables, { table: DELIVERIES, keys }, (row) => {
    refusal = redeliveryRefusal(stateOf(row), force);
    return columnsAfter(row, { kind: 'redeliver', force, dueAtMs }, dueAtMs);
  });
  if (changed.length === 0) return refusal ?? 'not known';
  return (await isWithdrawn()) ? 'withdrawn' : 'due';
}
