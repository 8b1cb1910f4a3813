import { FuelError } from '../../base/errors.ts';
import type { SerialWork } from '../../base/serial-work.ts';
import type { Tables } from '../../tables/tables.ts';
import {
  type Attempt,
  type DeliveryReport,
  MAX_ATTEMPTS_KEPT,
  type WebhookHealth,
} from '../queue/delivery.ts';
import { type DeliveryProgress, keptAttempt, nextState } from '../queue/next-state.ts';
import { type Changes, changeDeliveries } from './changes.ts';
import { type StreakStep, stepStreaks } from './streaks.ts';
import {
  attemptsOf,
  DELIVERIES,
  type DeliveryRow,
  owedOf,
  progressOf,
  type StoredRow,
  toColumns,
} from './tables.ts';

export interface Recorded {
  readonly health: ReadonlyMap<string, WebhookHealth>;
  /** When those that are pending now are due. */
  readonly dueMs: readonly number[];
}

/**
 * Records reports. A failure is counted in the streak of its lane before its delivery ends: a process that dies between the
 * two makes the attempt again, which is counted under the same name. `serial`: several reports of this process at once
 * would only make each other's change of a streak fail.
 */
export async function recordReports(
  tables: Tables,
  reports: readonly DeliveryReport[],
  { nowMs, serial }: { readonly nowMs: number; readonly serial: SerialWork },
): Promise<Recorded> {
  for (const report of reports) assertStorable(report);
  const health = new Map<string, WebhookHealth>();
  const owed = [...new Set(reports.map(owedOf))];
  const changed = await changeDeliveries(tables, owed, async (rows) => {
    const { reached, steps } = foldReports(rows, reports, nowMs);
    if (steps.length > 0)
      for (const [prefix, of] of await serial.run(() => stepStreaks(tables, steps))) health.set(prefix, of);
    return withAttempts(tables, reached);
  });
  return { health, dueMs: changed.flatMap(({ due_at }) => due_at ?? []) };
}

/** The attempts are stored as text, which would take anything. */
function assertStorable(report: DeliveryReport): void {
  const attempt = 'attempt' in report ? report.attempt : null;
  if (attempt === null || Number.isFinite(attempt.startedAtMs + attempt.durationMs)) return;
  throw new FuelError('ITEM_REFUSED', `a time of the attempt on ${report.id} is not a number`);
}

/** How far a delivery is after the reports of it, and the attempts that are kept with it. */
interface Reached {
  readonly row: DeliveryRow;
  progress: DeliveryProgress;
  readonly attempts: Attempt[];
}

function foldReports(rows: readonly DeliveryRow[], reports: readonly DeliveryReport[], nowMs: number) {
  const known = new Map<string, Reached>(
    rows.map((row) => [row.owed, { row, progress: progressOf(row), attempts: [] }]),
  );
  const reached = new Set<Reached>();
  const steps: StreakStep[] = [];
  for (const report of reports) {
    const delivery = known.get(owedOf(report));
    const next = delivery && nextState(delivery.progress, report, nowMs);
    if (delivery === undefined || next === undefined) continue;
    const { progress, attempt, streak } = next;
    const { prefix, owed, erased } = delivery.row;
    delivery.progress = progress;
    reached.add(delivery);
    if (attempt === undefined) continue;
    delivery.attempts.push(keptAttempt(attempt, erased === 1));
    if (streak !== undefined) steps.push({ prefix, delivery: owed, streak, attempt });
  }
  return { reached: [...reached], steps };
}

async function withAttempts(tables: Tables, reached: readonly Reached[]): Promise<Changes<StoredRow>> {
  const hasMore = ({ row, attempts }: Reached): boolean =>
    attempts.length > 0 && (row.attempts_in_cycle > 0 || row.cycle > 1);
  const keys = reached.filter(hasMore).map(({ row }) => row.owed);
  const stored = keys.length === 0 ? [] : await tables.get(DELIVERIES, keys, ['owed', 'attempts']);
  const before = new Map(stored.map((row) => [row.owed, attemptsOf(row)]));
  return new Map(
    reached.map(({ row, progress, attempts }): [string, Partial<StoredRow>] => {
      const columns = toColumns(progress, row.account_id);
      if (attempts.length === 0) return [row.owed, columns];
      const kept = [...(before.get(row.owed) ?? []), ...attempts].slice(-MAX_ATTEMPTS_KEPT);
      return [row.owed, { ...columns, attempts: JSON.stringify(kept) }];
    }),
  );
}
