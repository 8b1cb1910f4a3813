import type { BuildProgress } from '../../pull/view/build/progress.ts';
import type { FollowerStatus } from '../../service/ops/followers.ts';
import { type Cell, type Column, state } from './columns.ts';

export const FOLLOWER_COLUMNS: readonly Column<FollowerStatus>[] = [
  { head: 'Follower', width: 12, cell: ({ name }) => name },
  {
    head: 'Behind',
    width: 24,
    cell: ({ lag_events, lag_seconds }) =>
      lag_events === 0 ? 'up to date' : `${lag_events ?? 'many'} events, ${duration(lag_seconds)}`,
  },
  { head: 'Position', width: 10, number: true, cell: ({ position }) => position },
  {
    head: 'Parked',
    width: 6,
    number: true,
    cell: ({ parked }) => (parked === 0 ? 0 : state(`${parked}`, 'bad')),
  },
  { head: 'Worked on by', cell: (follower) => [holderOf(follower), rebuildOf(follower)] },
];

function holderOf({ name, holder }: FollowerStatus): Cell {
  if (holder !== null) return holder;
  return state(name === 'transactions' ? 'no projector works' : 'no process consumes it', 'warn');
}

function rebuildOf({ rebuild, unfinished_rebuild_percent: unfinished }: FollowerStatus): Cell {
  if (rebuild !== undefined) return `; ${progressText(rebuild)}`;
  if (unfinished === undefined) return '';
  return `; a rebuild stopped at ${unfinished} %: the same command continues it, with --accept where records differ`;
}

export function progressText({ percent, rate, seconds_left }: BuildProgress): string {
  const left = seconds_left === null ? '' : `, ${duration(seconds_left)} left`;
  return `rebuilding: ${percent} %, ${rate} events/s${left}`;
}

const DAY = 86_400;

/** `45 s`, `12 min`, `3 h 5 min`, `2 days`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
  return `${Math.floor(whole / DAY)} days`;
}
