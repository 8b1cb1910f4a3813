import { put, type Tables } from '../../tables/tables.ts';
import type { Attempt, WebhookHealth } from '../queue/delivery.ts';
import {
  ended,
  extended,
  type Failure,
  type FailureStreak,
  healthOf,
  NO_STREAK,
  timedFrom,
} from '../queue/failure-streak.ts';
import { changeEach } from './changes.ts';
import { LANES, type LaneRow } from './tables.ts';

/** The effect of a report on the streak of its lane. */
export interface StreakStep {
  readonly prefix: string;
  readonly delivery: string;
  readonly streak: 'end' | 'extend';
  readonly attempt: Attempt;
  readonly accessSinceMs: number | undefined;
}

/** Takes the steps in order. Returns the health of the lanes whose streak was extended or ended. */
export async function stepStreaks(
  tables: Tables,
  steps: readonly StreakStep[],
): Promise<Map<string, WebhookHealth>> {
  const byLane = Map.groupBy(steps, ({ prefix }) => prefix);
  const moved = new Set(steps.flatMap(({ prefix, streak }) => (streak === 'extend' ? [prefix] : [])));
  const streaks = await changeStreaks(tables, [...byLane.keys()], (before, prefix) => {
    let streak = before;
    for (const { streak: how, delivery, attempt, accessSinceMs = 0 } of byLane.get(prefix) ?? [])
      streak = how === 'end' ? ended(streak) : extended(timedFrom(streak, accessSinceMs), delivery, attempt);
    if (streak !== before) moved.add(prefix);
    return streak;
  });
  const shown = [...streaks].filter(([prefix]) => moved.has(prefix));
  return new Map(shown.map(([prefix, streak]) => [prefix, healthOf(streak)]));
}

/** Changes the streaks of lanes that have a row, and returns them as they are afterwards. */
export async function changeStreaks(
  tables: Tables,
  prefixes: readonly string[],
  decide: (streak: FailureStreak, prefix: string) => FailureStreak,
): Promise<ReadonlyMap<string, FailureStreak>> {
  const streaks = new Map<string, FailureStreak>();
  await changeEach<LaneRow>(tables, { table: LANES, keys: prefixes }, (row) => {
    const before = streakOf(row);
    const streak = decide(before, row.prefix);
    streaks.set(row.prefix, streak);
    return streak === before ? undefined : streakColumns(streak);
  });
  return streaks;
}

export function streakOf(row: LaneRow): FailureStreak {
  return {
    enabledAt: row.enabled_at,
    timedFrom: row.timed_from,
    failures: row.failed_in_a_row === null ? [] : (JSON.parse(row.failures) as Failure[]),
  };
}

export function newLane(prefix: string, accountId: number) {
  return put(LANES, { prefix, account_id: accountId, ...streakColumns(NO_STREAK), version: 1 }, 'missing');
}

function streakColumns({ enabledAt, timedFrom, failures }: FailureStreak) {
  return {
    enabled_at: enabledAt,
    timed_from: timedFrom,
    failed_in_a_row: failures.length === 0 ? null : failures.length,
    failures: JSON.stringify(failures),
  };
}
