import type { Anchor } from '../../event-store/store-identity.ts';
import type { RowOf } from '../../tables/plan.ts';
import { put } from '../../tables/tables.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Generation, Made } from './generations.ts';
import type { ProgressTable } from './stores.ts';

const NAME = 'transactions';

/** The place that a generation has reached. */
export interface Progress {
  readonly checkpoint: Checkpoint;
  /** Whether it is stored yet. Nothing is served before that. */
  readonly hasBegun: boolean;
}

export async function readProgress(generation: Generation, made: Made): Promise<Progress> {
  const row = await read(generation);
  return { checkpoint: checkpointIn(row, made), hasBegun: row !== undefined };
}

/** Changes the stored checkpoint; another process may change it at the same moment. */
export async function changeProgress(
  generation: Generation,
  made: Made,
  change: (before: Checkpoint) => Checkpoint,
): Promise<Checkpoint> {
  const { tables, progress } = generation;
  for (;;) {
    const row = await read(generation);
    const after = change(checkpointIn(row, made));
    const guard = row === undefined ? 'missing' : { as: row };
    const [isDone] = await tables.write([put(progress, rowOf(after), guard)]);
    if (isDone === true) return after;
  }
}

async function read({ tables, progress }: Generation): Promise<RowOf<ProgressTable> | undefined> {
  const [row] = await tables.get(progress, [NAME]);
  return row;
}

function checkpointIn(row: RowOf<ProgressTable> | undefined, made: Made): Checkpoint {
  if (row === undefined)
    return { ...made, position: 0, anchor: undefined, since: { atMs: 0, position: 0, events: 0 } };
  return {
    ...made,
    position: row.position,
    anchor: row.anchor === null ? undefined : (JSON.parse(row.anchor) as Anchor),
    since: { atMs: row.since_at, position: row.since_position, events: row.since_events },
  };
}

function rowOf({ position, anchor, since }: Checkpoint): RowOf<ProgressTable> {
  return {
    name: NAME,
    position,
    anchor: anchor === undefined ? null : JSON.stringify(anchor),
    since_at: since.atMs,
    since_position: since.position,
    since_events: since.events,
  };
}
