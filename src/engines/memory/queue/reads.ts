import type { Delivery, StoredDelivery } from '../../../push/queue/delivery.ts';
import type {
  DeliveryFilter,
  DeliveryReads,
  DeliverySummary,
  LaneReads,
} from '../../../push/queue/delivery-reads.ts';
import { shortAnswer } from '../../../push/queue/failure-streak.ts';
import { newestFirst, StoredBatch } from '../../stored/delivery.ts';
import { dueOf, type Entry, leastOf, type MemoryDeliveries } from './deliveries.ts';

export function memoryReads(log: MemoryDeliveries): DeliveryReads {
  return {
    logId: async () => ({ ...log.name }),
    async find(id) {
      const entry = log.entries.get(id);
      return entry && deliveryOf(entry);
    },
    async page(filter, { limit, after }) {
      const found = log.all(filterOf(filter)).map(summaryOf).sort(newestFirst);
      const from = after === undefined ? found : found.filter((delivery) => newestFirst(after, delivery) < 0);
      const deliveries = from.slice(0, limit);
      return { deliveries, next: from.length > limit ? deliveries.at(-1) : undefined };
    },
    async ofTransactions(transactionIds) {
      const wanted = new Set(transactionIds);
      return log
        .all(({ owed }) => wanted.has(owed.transactionId))
        .map(({ owed, progress }) => {
          const { id, prefix, accountId, transactionId, recordedAtMs } = owed;
          const { state, cycle } = progress;
          return { id, prefix, accountId, transactionId, recordedAtMs, state, cycle };
        });
    },
    async transactionsAfter(afterId, limit) {
      const ids = new Set(log.all().map(({ owed }) => owed.transactionId));
      return ascending(ids)
        .filter((id) => id > afterId)
        .slice(0, limit);
    },
    async storedAfter(transactionId) {
      const later = log.all(({ owed }) => owed.transactionId > transactionId).map(storedOf);
      later.sort((a, b) => a.transactionId - b.transactionId);
      const batch = new StoredBatch();
      later.every((delivery) => batch.take(delivery));
      return batch.deliveries;
    },
    withdrawnAfter: async (transactionId) =>
      ascending(log.withdrawn.keys()).filter((id) => id > transactionId),
  };
}

export function memoryLaneReads(log: MemoryDeliveries): LaneReads {
  return {
    health: async (prefix) => structuredClone(log.healthOf(prefix)),
    async failingLanes(limit) {
      const failing = [...log.streaks].filter(([, { failedInARow }]) => failedInARow > 0);
      const longest = failing.sort(([, a], [, b]) => b.failedInARow - a.failedInARow).slice(0, limit);
      return longest.map(([prefix, health]) => ({ prefix, ...structuredClone(health) }));
    },
    async attempts(prefix, { deliveries, maxRead }) {
      const ofLane = log.all(({ owed }) => owed.prefix === prefix);
      const newest = ofLane.sort((a, b) => b.owed.createdAtMs - a.owed.createdAtMs).slice(0, maxRead);
      const attempted = newest.filter(({ progress }) => progress.attemptsInCycle > 0 || progress.cycle > 1);
      const all = attempted.slice(0, deliveries).flatMap(({ owed, attempts }) =>
        attempts.map(({ startedAtMs, durationMs, outcome }) => {
          const answer = shortAnswer(outcome);
          return { deliveryId: owed.id, startedAtMs, durationMs, ok: outcome.ok, answer };
        }),
      );
      return all.sort((a, b) => a.startedAtMs - b.startedAtMs);
    },
    async backlog(limit, prefix) {
      const entries = log.all(({ owed }) => prefix === undefined || owed.prefix === prefix);
      const count = (state: Delivery['state']): number =>
        Math.min(limit, entries.filter(({ progress }) => progress.state === state).length);
      const lanes = prefix === undefined ? [...log.streaks.keys()] : [prefix];
      const failing = lanes.filter((lane) => log.healthOf(lane).failedInARow > 0);
      return {
        pending: count('pending'),
        held: count('held'),
        failingLanes: Math.min(limit, failing.length),
        nextDueAtMs: leastOf(entries.map(({ progress }) => dueOf(progress))),
      };
    },
  };
}

function deliveryOf({ owed, progress, attempts }: Entry): Delivery {
  const { endedAtMs: _, leaseToken: __, ...shown } = progress;
  return structuredClone({ ...owed, ...shown, attempts });
}

function storedOf(entry: Entry): StoredDelivery {
  return { ...deliveryOf(entry), endedAtMs: entry.progress.endedAtMs };
}

function summaryOf(entry: Entry): DeliverySummary {
  const { record: _, attempts: __, ...summary } = deliveryOf(entry);
  return summary;
}

function filterOf({ prefix, accountId, transactionId, state, sinceMs, untilMs }: DeliveryFilter) {
  return ({ owed, progress }: Entry): boolean =>
    (prefix === undefined || owed.prefix === prefix) &&
    (accountId === undefined || owed.accountId === accountId) &&
    (transactionId === undefined || owed.transactionId === transactionId) &&
    (state === undefined || progress.state === state) &&
    (sinceMs === undefined || owed.createdAtMs >= sinceMs) &&
    (untilMs === undefined || owed.createdAtMs <= untilMs);
}

function ascending(ids: Iterable<number>): number[] {
  return [...ids].sort((a, b) => a - b);
}
