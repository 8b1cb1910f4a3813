import type { Clock } from '../../../base/clock.ts';
import type { ClaimedDelivery } from '../../../push/queue/delivery.ts';
import type { DeliveryWork, OpenOfLane } from '../../../push/queue/delivery-queue.ts';
import { FailureStreaks } from '../../../push/queue/failure-streak.ts';
import { NO_RECORD, newProgress } from '../../../push/queue/next-state.ts';
import { FreeSlots, newLeaseToken } from '../../stored/claims.ts';
import { cyclesOf } from '../../stored/delivery.ts';
import { dueOf, type Entry, leastOf, type MemoryDeliveries } from './deliveries.ts';

export function memoryWork(log: MemoryDeliveries, clock: Clock): Omit<DeliveryWork, 'changed'> {
  return {
    async enqueue(deliveries, claimFor) {
      const token = newLeaseToken(claimFor?.holder ?? '');
      const untilMs = claimFor === undefined ? 0 : claimFor.nowMs + claimFor.leaseMs;
      const slots = new FreeSlots(claimFor?.laneCapacity ?? (() => 0));
      const claimed: ClaimedDelivery[] = [];
      let unclaimed = 0;
      assertTimes(deliveries.map(({ createdAtMs }) => createdAtMs));
      for (const delivery of structuredClone(deliveries)) {
        if (log.entries.has(delivery.id)) continue;
        const isWithdrawn = log.withdrawn.has(delivery.transactionId);
        const isClaimed = !isWithdrawn && slots.take(delivery.prefix);
        const how = isWithdrawn ? 'withdrawn' : isClaimed ? { token, untilMs } : undefined;
        const owed = isWithdrawn ? { ...delivery, record: NO_RECORD } : delivery;
        log.put({ owed, progress: newProgress(delivery, how), attempts: [] });
        if (isClaimed)
          claimed.push({ ...structuredClone(delivery), cycle: 1, attemptNumber: 1, leaseToken: token });
        else if (!isWithdrawn) unclaimed += 1;
      }
      if (unclaimed > 0) log.notify();
      return claimed;
    },
    async claim({ nowMs, holder, leaseMs, limit, laneCapacity }) {
      const token = newLeaseToken(holder);
      const due = [...log.due.values()].filter(({ progress }) => dueOf(progress) <= nowMs);
      const lanes = Map.groupBy(due.toSorted(byDue), ({ owed }) => owed.prefix);
      const claimed: Entry[] = [];
      for (const [prefix, entries] of lanes) {
        const most = Math.min(laneCapacity(prefix), limit - claimed.length);
        for (const entry of entries.slice(0, Math.max(0, most))) claimed.push(entry);
      }
      return claimed.map((entry) => {
        entry.progress = { ...entry.progress, leaseToken: token, dueAtMs: nowMs + leaseMs };
        const { cycle, attemptsInCycle } = entry.progress;
        return {
          ...structuredClone(entry.owed),
          cycle,
          attemptNumber: attemptsInCycle + 1,
          leaseToken: token,
        };
      });
    },
    async report(reports) {
      const nowMs = clock.now();
      const streaks = new FailureStreaks((prefix) => log.healthOf(prefix));
      let isDue = false;
      assertTimes(reports.map((report) => ('attempt' in report ? (report.attempt?.startedAtMs ?? 0) : 0)));
      for (const report of reports) {
        const entry = log.entries.get(report.id);
        const next = entry && log.change(entry, report, nowMs);
        if (entry === undefined || next === undefined) continue;
        streaks.apply(entry.owed.prefix, next);
        if (next.progress.dueAtMs !== null) isDue = true;
      }
      for (const [prefix, health] of streaks.changed) log.streaks.set(prefix, health);
      if (isDue) log.notify();
      return structuredClone(streaks.changed);
    },
    async nextDueAtMs(laterThanMs = -1) {
      const lanes = Map.groupBy(log.due.values(), ({ owed }) => owed.prefix);
      return leastOf([...lanes.values()].map(firstDue).filter((atMs) => atMs > laterThanMs));
    },
    async heldAccounts() {
      const held = log.all(({ progress }) => progress.state === 'held');
      return [...new Set(held.map(({ owed }) => owed.accountId))].sort((a, b) => a - b);
    },
    async resume(accountId, nowMs) {
      const held = log.all(({ owed, progress }) => owed.accountId === accountId && progress.state === 'held');
      for (const entry of held) {
        log.change(entry, { kind: 'resume' }, nowMs);
        const { prefix } = entry.owed;
        log.streaks.set(prefix, { ...log.healthOf(prefix), failingSinceMs: null });
      }
      if (held.length > 0) log.notify();
      return held.length;
    },
    async endLane(prefix, reason, nowMs, which = {}) {
      const ofLane = log.all((entry) => entry.owed.prefix === prefix && isAmong(entry, which));
      return ofLane.filter((entry) => log.change(entry, { kind: 'end lane', reason }, nowMs)).length;
    },
    resetHealth: async (prefix, enabledAtMs) => log.reset(prefix, enabledAtMs),
  };
}

function isAmong({ owed, progress }: Entry, { before = Infinity, redelivered }: OpenOfLane): boolean {
  const [from, to] = cyclesOf(redelivered);
  return owed.position < before && from <= progress.cycle && progress.cycle <= to;
}

/** As an engine that stores numbers refuses what is none, before anything is stored. */
function assertTimes(times: readonly number[]): void {
  const bad = times.find((atMs) => !Number.isFinite(atMs));
  if (bad !== undefined) throw new RangeError(`${bad} is no time`);
}

function byDue(a: Entry, b: Entry): number {
  return dueOf(a.progress) - dueOf(b.progress);
}

function firstDue(entries: readonly Entry[]): number {
  return entries.reduce((least, { progress }) => Math.min(least, dueOf(progress)), Infinity);
}
