import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../base/clock.ts';
import type { ClaimedDelivery, NewDelivery } from '../../../push/queue/delivery.ts';
import type { ClaimOptions, DeliveryWork } from '../../../push/queue/delivery-queue.ts';
import { FailureStreaks, healthy } from '../../../push/queue/failure-streak.ts';
import { NO_RECORD, newProgress } from '../../../push/queue/next-state.ts';
import { FreeSlots, newLeaseToken } from '../../stored/claims.ts';
import { cyclesOf, type Row, toClaimed } from '../../stored/delivery.ts';
import type { CommitWatch } from '../driver/commit-watch.ts';
import type { Database } from '../driver/database.ts';
import type { SqliteLanes } from './lanes.ts';
import { changeRow, deliveryValues, recordValues, type Statements, withdrawnAmong } from './statements.ts';

/** Deliveries that one commit of a bulk change touches: some milliseconds of the event loop. */
const BULK_ROWS = 250;
const MOST = Number.MAX_SAFE_INTEGER;

/** What the operations of the queue work with. */
export interface QueueParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly commits: CommitWatch;
  readonly lanes: SqliteLanes;
  readonly statements: Statements;
}

export function sqliteWork(parts: QueueParts): DeliveryWork {
  const { db, clock, commits, lanes, statements } = parts;
  return {
    changed: commits,
    async enqueue(deliveries, claimFor) {
      db.assertOpen();
      if (deliveries.length === 0) return [];
      const { claimed, unclaimed } = await db.write(() => storeNew(parts, deliveries, claimFor));
      if (unclaimed > 0) commits.notify();
      return claimed;
    },
    async claim(options) {
      db.assertOpen();
      if (!lanes.hasWork(options)) return []; // found out without a lock
      return db.write(() => claimDue(parts, options));
    },
    async report(reports) {
      let due = false;
      const streaks = new FailureStreaks((prefix) => lanes.health(prefix));
      await db.write(() => {
        const nowMs = clock.now();
        const changed = new Set<string>();
        for (const report of reports) {
          const row = statements.reported.get(report.transactionId, report.prefix);
          const next = row && changeRow(statements, row, report, nowMs);
          if (row === undefined || next === undefined) continue;
          const prefix = row.prefix as string;
          changed.add(prefix);
          streaks.apply(prefix, next);
          if (next.progress.dueAtMs !== null) due = true;
        }
        lanes.refresh(changed);
        for (const [prefix, health] of streaks.changed) lanes.setHealth(prefix, health);
      });
      if (due) commits.notify();
      return streaks.changed;
    },
    async nextDueAtMs(laterThanMs = -1) {
      db.assertOpen();
      return lanes.nextDueAtMs(laterThanMs);
    },
    async heldAccounts() {
      return db.read(() => heldAccounts(statements));
    },
    async resume(accountId, nowMs) {
      let resumed = 0;
      let after = 0; // what is held again meanwhile is not resumed twice
      for (;;) {
        const held = await db.write(() => {
          const rows = statements.heldOfAccount.all(accountId, after, BULK_ROWS);
          const prefixes = changeRows(parts, rows, { kind: 'resume' }, nowMs);
          for (const prefix of prefixes) lanes.endStreakInTime(prefix);
          return rows;
        });
        if (held.length > 0) commits.notify();
        resumed += held.length;
        if (held.length < BULK_ROWS) return resumed;
        after = held.at(-1)?.seq as number;
        await nextTurn();
      }
    },
    async endLane(prefix, reason, nowMs, { before = MOST, redelivered } = {}) {
      const [from, to] = cyclesOf(redelivered);
      let ended = 0;
      for (;;) {
        const count = await db.write(() => {
          const open = statements.openOfLane.all(prefix, before, from, to, BULK_ROWS);
          changeRows(parts, open, { kind: 'end lane', reason }, nowMs);
          return open.length;
        });
        ended += count;
        if (count < BULK_ROWS) return ended;
        await nextTurn();
      }
    },
    async resetHealth(prefix, enabledAtMs) {
      await db.write(() => {
        if (!lanes.markReset(prefix, enabledAtMs)) return;
        if ((lanes.health(prefix).failingSinceMs ?? 0) < enabledAtMs) lanes.setHealth(prefix, healthy());
      });
    },
  };
}

/** Changes rows that a statement selected, all by one change; returns their lanes. Must run in a transaction. */
export function changeRows(
  { statements, lanes }: QueueParts,
  rows: readonly Row[],
  change: Parameters<typeof changeRow>[2],
  nowMs: number,
): ReadonlySet<string> {
  for (const row of rows) changeRow(statements, row, change, nowMs);
  const prefixes = new Set(rows.map(({ prefix }) => prefix as string));
  lanes.refresh(prefixes);
  return prefixes;
}

/** Stores the new deliveries and claims them as far as their lanes have capacity. */
function storeNew(
  { statements, lanes }: QueueParts,
  deliveries: readonly NewDelivery[],
  claimFor: Omit<ClaimOptions, 'limit'> | undefined,
) {
  const token = newLeaseToken(claimFor?.holder ?? '');
  const untilMs = claimFor === undefined ? 0 : claimFor.nowMs + claimFor.leaseMs;
  const withdrawnIds = withdrawnAmong(
    statements,
    deliveries.map(({ transactionId }) => transactionId),
  );
  const slots = new FreeSlots(claimFor?.laneCapacity ?? (() => 0));
  const changed = new Set<string>();
  const claimed: ClaimedDelivery[] = [];
  let unclaimed = 0;
  for (const delivery of deliveries) {
    const { prefix } = delivery;
    const withdrawn = withdrawnIds.has(delivery.transactionId);
    const isClaimed = !withdrawn && slots.of(prefix) > 0;
    const lease = isClaimed ? { token, untilMs } : undefined;
    const progress = newProgress(delivery, withdrawn ? 'withdrawn' : lease);
    const seq = statements.insert.get(...deliveryValues({ ...delivery, ...progress }))?.seq as
      | number
      | undefined;
    if (seq === undefined) continue;
    statements.setRecord.run(seq, ...recordValues(withdrawn ? NO_RECORD : delivery.record));
    changed.add(prefix);
    if (isClaimed) {
      slots.take(prefix);
      claimed.push({ ...delivery, cycle: 1, attemptNumber: 1, leaseToken: token });
    } else if (!withdrawn) unclaimed++;
  }
  lanes.refresh(changed);
  return { claimed, unclaimed };
}

function claimDue({ statements, lanes }: QueueParts, options: ClaimOptions): ClaimedDelivery[] {
  const { nowMs, leaseMs, limit, laneCapacity } = options;
  const token = newLeaseToken(options.holder);
  const claimed: ClaimedDelivery[] = [];
  const changed = new Set<string>();
  for (const prefix of lanes.due(nowMs)) {
    const most = Math.min(laneCapacity(prefix), limit - claimed.length);
    if (most <= 0) continue;
    changed.add(prefix);
    for (const row of statements.due.all(prefix, nowMs, most)) {
      statements.lease.run(token, nowMs + leaseMs, row.seq as number);
      claimed.push(toClaimed(row, row, token));
    }
    if (claimed.length === limit) break;
  }
  lanes.refresh(changed);
  return claimed;
}

/** One index search for each account, however many deliveries it has. */
function heldAccounts({ nextHeldAccount }: Statements): number[] {
  const accounts: number[] = [];
  for (let last = Number.MIN_SAFE_INTEGER; ; ) {
    const row = nextHeldAccount.get(last);
    if (row === undefined) return accounts;
    last = row.account_id as number;
    accounts.push(last);
  }
}
