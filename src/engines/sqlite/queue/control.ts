import { type RenderedRecord, redactedRecord } from '../../../../projections/record.ts';
import { renameRefused } from '../../../push/delivery-log.ts';
import { type LogName, MAX_ATTEMPTS_KEPT, type StoredDelivery } from '../../../push/queue/delivery.ts';
import type { DeliveryControl } from '../../../push/queue/delivery-queue.ts';
import { NO_RECORD, redeliveryRefusal } from '../../../push/queue/next-state.ts';
import { fromStored, RECORD, toProgress } from '../../stored/delivery.ts';
import {
  attemptValues,
  deliveryValues,
  recordValues,
  type Statements,
  withdrawnAmong,
} from './statements.ts';
import { changeRows, type QueueParts } from './work.ts';

export function sqliteControl(parts: QueueParts): DeliveryControl {
  const { db, clock, commits, lanes, statements } = parts;
  const withdraw = (transactionId: number, nowMs: number): void => {
    statements.insertWithdrawal.run(transactionId, nowMs);
    changeRows(parts, statements.openOfTransaction.all(transactionId), { kind: 'withdraw' }, nowMs);
  };
  return {
    async withdraw(transactionIds, nowMs) {
      await db.write(() => {
        for (const id of transactionIds) withdraw(id, nowMs);
      });
    },
    async erase(transactionId, nowMs) {
      await db.write(() => {
        withdraw(transactionId, nowMs);
        changeRecords(statements, transactionId, () => NO_RECORD);
      });
    },
    async redact(transactionId) {
      return db.write(() => changeRecords(statements, transactionId, redactedRecord));
    },
    async redeliver(id, { force, dueAtMs }) {
      const answer = await db.write(() => {
        const row = statements.one.get(id);
        if (row === undefined) return 'not known';
        if (withdrawnAmong(statements, [row.transaction_id as number]).size > 0) return 'withdrawn';
        const { state, cycle } = toProgress(row);
        const refusal = redeliveryRefusal(state, force);
        if (refusal !== undefined) return refusal;
        changeRows(parts, [row], { kind: 'redeliver', force, cycle, dueAtMs }, dueAtMs);
        return 'due';
      });
      if (answer === 'due') commits.notify();
      return answer;
    },
    async purge(endedBeforeMs, limit) {
      return db.write(() => {
        const rows = statements.purge.all(endedBeforeMs, limit);
        for (const { seq } of rows as { seq: number }[]) {
          statements.purgeRecord.run(seq);
          statements.purgeAttempts.run(seq);
        }
        return rows.length;
      });
    },
    async purgeWithdrawals(madeBeforeMs, limit) {
      return db.write(() => Number(statements.purgeWithdrawals.run(madeBeforeMs, limit).changes));
    },
    async store({ name, deliveries = [], withdrawn = [], streaks = [] }) {
      await db.write(() => {
        if (name !== undefined) adopt(statements, name);
        for (const delivery of deliveries) put(statements, delivery);
        lanes.refresh(new Set(deliveries.map(({ prefix }) => prefix)));
        for (const id of withdrawn) statements.insertWithdrawal.run(id, clock.now());
        for (const { prefix, ...health } of streaks) lanes.setHealth(prefix, health);
      });
    },
  };
}

function adopt({ log, anyDelivery, renameLog }: Statements, { id, startedAtMs }: LogName): void {
  const own = log.get()?.id as string;
  if (own === id) return;
  if (anyDelivery.get() !== undefined) throw renameRefused(own, id);
  renameLog.run(id, startedAtMs);
}

/** And empties what receivers said, which may repeat the record. */
function changeRecords(
  { recordsOf, setRecord, eraseAnswers }: Statements,
  transactionId: number,
  change: (record: RenderedRecord) => RenderedRecord,
): number {
  let changed = 0;
  for (const row of recordsOf.all(transactionId)) {
    const before = fromStored<RenderedRecord>(RECORD, row);
    const record = change(before);
    if (record === before) continue;
    setRecord.run(row.seq as number, ...recordValues(record));
    eraseAnswers.run(row.seq as number);
    changed += 1;
  }
  return changed;
}

function put(statements: Statements, delivery: StoredDelivery): void {
  const seq = statements.put.get(...deliveryValues({ ...delivery, leaseToken: null }))?.seq as number;
  statements.setRecord.run(seq, ...recordValues(delivery.record));
  statements.purgeAttempts.run(seq);
  for (const attempt of delivery.attempts.slice(-MAX_ATTEMPTS_KEPT))
    statements.insertAttempt.run(seq, ...attemptValues(attempt));
}
