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
import { type Changes, changeRows } from './changes.ts';
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
  /** The time at which the reported deliveries that are pending now are due. */
  readonly dueMs: readonly number[];
}

/**
 * Implements `DeliveryQueue.report`. A failure is added to the streak of its lane before its delivery ends: if the process
 * dies between the two, the attempt is repeated, and counts as the same failure. Changes of streaks run in `serial`,
 * since reports that this process makes at once would only make each other's changes fail.
 */
export async function recordReports(
  tables: Tables,
  reports: readonly DeliveryReport[],
  { nowMs, serial }: { readonly nowMs: number; readonly serial: SerialWork },
): Promise<Recorded> {
  for (const report of reports) assertStorable(report);
  const health = new Map<string, WebhookHealth>();
  const which = { table: DELIVERIES, keys: [...new Set(reports.map(owedOf))] };
  const changed = await changeRows<DeliveryRow, StoredRow>(tables, which, async (rows) => {
    const { reached, steps } = foldReports(rows, reports, nowMs);
    if (steps.length > 0)
      for (const [prefix, of] of await serial.run(() => stepStreaks(tables, steps))) health.set(prefix, of);
    return withAttempts(tables, reached);
  });
  return { health, dueMs: changed.flatMap(({ due_at }) => due_at ?? []) };
}

/** Attempts are stored as JSON text, where no type is checked. */
function assertStorable(report: DeliveryReport): void {
  const attempt = 'attempt' in report ? report.attempt : null;
  if (attempt === null || Number.isFinite(attempt.startedAtMs + attempt.durationMs)) return;
  throw new FuelError('ITEM_REFUSED', `a time of the attempt on ${report.id} is not a number`);
}

/** A delivery's progress after the reports about it, and the attempts to add. */
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
    const accessSinceMs = report.kind === 'failed' ? report.accessSinceMs : undefined;
    if (streak !== undefined) steps.push({ prefix, delivery: owed, streak, attempt, accessSinceMs });
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
      const columns = toColumns(progress);
      if (attempts.length === 0) return [row.owed, columns];
      const kept = [...(before.get(row.owed) ?? []), ...attempts].slice(-MAX_ATTEMPTS_KEPT);
      return [row.owed, { ...columns, attempts: JSON.stringify(kept) }];
    }),
  );
}
