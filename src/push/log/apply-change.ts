import { type RenderedRecord, redactedRecord } from '../../../projections/record.ts';
import type { Selection, Tables } from '../../tables/tables.ts';
import type { OwedKey } from '../queue/delivery.ts';
import type { DeliveryQueue, QueueChange } from '../queue/delivery-queue.ts';
import { reset, untimed } from '../queue/failure-streak.ts';
import { NO_RECORD, redeliveryRefusal, withoutWords } from '../queue/next-state.ts';
import { blocksOf, changeDeliveries, changeEach, keysOf } from './changes.ts';
import { changeStreaks } from './streaks.ts';
import {
  attemptsOf,
  columnsAfter,
  DELIVERIES,
  type DeliveryRow,
  owedOf,
  recordOf,
  type StoredRow,
  stateOf,
} from './tables.ts';
import { endWithdrawn, markWithdrawn, ofTransactions } from './withdrawals.ts';

/** As `DeliveryQueue.change` says. */
export async function applyChange(tables: Tables, change: QueueChange, nowMs: number): Promise<number> {
  switch (change.kind) {
    case 'enabled':
      await changeStreaks(tables, [change.prefix], (streak) => reset(streak, change.atMs));
      return 0;
    case 'erase':
      await changeOpen(tables, { kind: 'withdraw', transactionIds: [change.transactionId] }, nowMs);
      return rewriteRecords(tables, change.transactionId, 'erase');
    case 'redact':
      return rewriteRecords(tables, change.transactionId, 'redact');
    default:
      return changeOpen(tables, change, nowMs);
  }
}

type OpenChange = Extract<QueueChange, { readonly kind: 'resume' | 'end lane' | 'withdraw' }>;

/**
 * What an event ends or begins: changes the open deliveries of a lane, an account or some transactions, each once, and says of
 * how many. One that comes to be held, or due, meanwhile is not changed twice.
 */
async function changeOpen(tables: Tables, change: OpenChange, nowMs: number): Promise<number> {
  // First, since whoever makes a delivery due looks for the mark after that.
  if (change.kind === 'withdraw') await markWithdrawn(tables, change.transactionIds, nowMs);
  let count = 0;
  for (const selection of selectionsOf(change)) {
    for await (const block of blocksOf(tables, selection)) {
      const meant = block.filter((row) => isMeant(row, change));
      if (meant.length === 0) continue;
      // First too: an interruption leaves no time of a streak that includes a hold.
      if (change.kind === 'resume')
        await changeStreaks(tables, [...new Set(meant.map(({ prefix }) => prefix))], (streak) =>
          untimed(streak, nowMs),
        );
      const changed = await changeEach(tables, keysOf(meant), (row) =>
        isMeant(row, change) ? columnsAfter(row, change, nowMs) : undefined,
      );
      count += changed.length;
    }
  }
  return count;
}

function selectionsOf(change: OpenChange): Iterable<Selection<typeof DELIVERIES>> {
  switch (change.kind) {
    case 'resume':
      return [{ index: 'held', equals: { held_account: change.accountId } }];
    case 'end lane': {
      const equals = { prefix: change.prefix };
      return [
        { index: 'due_in_lane', equals },
        { index: 'held_in_lane', equals },
      ];
    }
    case 'withdraw':
      return ofTransactions(change.transactionIds);
    default:
      return change satisfies never;
  }
}

function isMeant({ position, cycle }: DeliveryRow, change: OpenChange): boolean {
  if (change.kind !== 'end lane') return true;
  const { before = Number.POSITIVE_INFINITY, redelivered } = change;
  return position < before && (redelivered === undefined || redelivered === cycle > 1);
}

const REWRITES: Readonly<Record<'erase' | 'redact', (record: RenderedRecord) => RenderedRecord>> = {
  erase: (record) => (record.head === NO_RECORD.head ? record : NO_RECORD),
  redact: redactedRecord,
};

/** Changes the records of a transaction's deliveries, and empties what receivers said, which may repeat the record. */
async function rewriteRecords(
  tables: Tables,
  transactionId: number,
  how: 'erase' | 'redact',
): Promise<number> {
  let count = 0;
  for (const selection of ofTransactions([transactionId])) {
    for await (const block of blocksOf(tables, selection)) {
      const changed = await changeDeliveries(tables, keysOf(block), async (rows) => {
        const stored = await tables.get(DELIVERIES, keysOf(rows), ['owed', 'record', 'attempts']);
        const columns = stored.map((row) => [row.owed, rewritten(row, REWRITES[how])] as const);
        return new Map(columns.flatMap(([id, each]) => (each === undefined ? [] : [[id, each]])));
      });
      count += changed.length;
    }
  }
  return count;
}

function rewritten(
  row: Pick<StoredRow, 'record' | 'attempts'>,
  rewrite: (record: RenderedRecord) => RenderedRecord,
): Partial<StoredRow> | undefined {
  const before = recordOf(row);
  const record = rewrite(before);
  if (record === before) return undefined;
  const silent = attemptsOf(row).map((each) => ({ ...each, outcome: withoutWords(each.outcome) }));
  return {
    ...{ record: JSON.stringify(record), erased: record === NO_RECORD ? 1 : 0 },
    attempts: silent.length === 0 ? null : JSON.stringify(silent),
  };
}

type Outcome = Awaited<ReturnType<DeliveryQueue['redeliver']>>;

/** Starts a new cycle. It is due before withdrawals are looked for again: a withdrawal ends it in either order. */
export async function redeliver(
  tables: Tables,
  delivery: OwedKey,
  { force, dueAtMs }: { readonly force: boolean; readonly dueAtMs: number },
): Promise<Outcome> {
  const owed = owedOf(delivery);
  const [found] = await tables.get(DELIVERIES, [owed], ['owed']);
  if (found === undefined) return 'not known';
  const isWithdrawn = async () => (await endWithdrawn(tables, [delivery.transactionId])).size > 0;
  if (await isWithdrawn()) return 'withdrawn';
  let refusal: Outcome | undefined;
  const changed = await changeEach(tables, [owed], (row) => {
    refusal = redeliveryRefusal(stateOf(row), force);
    return columnsAfter(row, { kind: 'redeliver', force, dueAtMs }, dueAtMs);
  });
  if (changed.length === 0) return refusal ?? 'not known';
  return (await isWithdrawn()) ? 'withdrawn' : 'due';
}
