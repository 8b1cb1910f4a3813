import { type RenderedRecord, redactedRecord } from '../../../../projections/record.ts';
import type { Clock } from '../../../base/clock.ts';
import { renameRefused } from '../../../push/delivery-log.ts';
import { MAX_ATTEMPTS_KEPT, type StoredDelivery } from '../../../push/queue/delivery.ts';
import type { DeliveryControl } from '../../../push/queue/delivery-queue.ts';
import { NO_RECORD, redeliveryRefusal, withoutWords } from '../../../push/queue/next-state.ts';
import type { Entry, MemoryDeliveries } from './deliveries.ts';

export function memoryControl(log: MemoryDeliveries, clock: Clock): DeliveryControl {
  const change = (transactionId: number, recordOf: (record: RenderedRecord) => RenderedRecord): number => {
    let changed = 0;
    for (const entry of log.all(({ owed }) => owed.transactionId === transactionId)) {
      const record = recordOf(entry.owed.record);
      if (record === entry.owed.record) continue;
      entry.owed = { ...entry.owed, record };
      entry.attempts = entry.attempts.map((each) => ({ ...each, outcome: withoutWords(each.outcome) }));
      changed += 1;
    }
    return changed;
  };
  return {
    async withdraw(transactionIds, nowMs) {
      for (const id of transactionIds) log.withdraw(id, nowMs);
    },
    async erase(transactionId, nowMs) {
      log.withdraw(transactionId, nowMs);
      change(transactionId, () => NO_RECORD);
    },
    redact: async (transactionId) => change(transactionId, redactedRecord),
    async redeliver(id, { force, dueAtMs }) {
      const entry = log.entries.get(id);
      if (entry === undefined) return 'not known';
      if (log.withdrawn.has(entry.owed.transactionId)) return 'withdrawn';
      const { state, cycle } = entry.progress;
      const refusal = redeliveryRefusal(state, force);
      if (refusal !== undefined) return refusal;
      log.change(entry, { kind: 'redeliver', force, cycle, dueAtMs }, dueAtMs);
      log.notify();
      return 'due';
    },
    async purge(endedBeforeMs, limit) {
      const endOf = ({ progress }: Entry): number => progress.endedAtMs ?? Infinity;
      const ended = log.all((entry) => endOf(entry) < endedBeforeMs);
      const oldest = ended.sort((a, b) => endOf(a) - endOf(b)).slice(0, limit);
      for (const { owed } of oldest) log.entries.delete(owed.id);
      return oldest.length;
    },
    async purgeWithdrawals(madeBeforeMs, limit) {
      const old = [...log.withdrawn].filter(([, atMs]) => atMs < madeBeforeMs);
      const oldest = old.sort(([, a], [, b]) => a - b).slice(0, limit);
      for (const [transactionId] of oldest) log.withdrawn.delete(transactionId);
      return oldest.length;
    },
    async store({ name = log.name, deliveries = [], withdrawn = [], streaks = [] }) {
      if (name.id !== log.name.id) {
        if (log.entries.size > 0) throw renameRefused(log.name.id, name.id);
        log.name = { ...name };
      }
      for (const delivery of structuredClone(deliveries)) log.put(entryOf(delivery));
      for (const id of withdrawn) log.withdrawn.set(id, clock.now());
      for (const { prefix, ...health } of structuredClone(streaks)) log.streaks.set(prefix, health);
    },
  };
}

function entryOf({
  endedAtMs,
  state,
  reason,
  cycle,
  attemptsInCycle,
  dueAtMs,
  attempts,
  ...owed
}: StoredDelivery): Entry {
  const progress = { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken: null };
  return { owed, progress, attempts: attempts.slice(-MAX_ATTEMPTS_KEPT) };
}
