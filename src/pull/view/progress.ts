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
  /** The checkpoint as it is stored; `undefined` if none is stored yet. Nothing is served before that. */
  readonly stored: RowOf<ProgressTable> | undefined;
}

/** A generation that changes were applied to. */
export interface Applied {
  readonly to: Generation;
  readonly made: Made;
  /** How far it was then. The position never moves back. */
  readonly progress: Progress;
}

export async function readProgress(
  { tables, progress }: Generation,
  made: Made,
  withinMs?: number,
): Promise<Progress> {
  const [stored] = await tables.find(progress, { index: 'key', equals: { name: NAME }, limit: 1, withinMs });
  return { checkpoint: checkpointIn(stored, made), stored };
}

/** Changes the checkpoint, which was read before if `from` is given; another process may change it at the same moment. */
export async function changeProgress(
  generation: Generation,
  made: Made,
  change: (before: Checkpoint) => Checkpoint,
  from?: Progress,
): Promise<Progress> {
  const { tables, progress } = generation;
  for (let before = from; ; before = undefined) {
    const { checkpoint, stored } = before ?? (await readProgress(generation, made));
    const after = change(checkpoint);
    const guard = stored === undefined ? 'missing' : { as: stored };
    const row = progressRow(after);
    const [isDone] = await tables.write([put(progress, row, guard)]);
    if (isDone === true) return { checkpoint: after, stored: row };
  }
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

function progressRow({ position, anchor, since }: Checkpoint): RowOf<ProgressTable> {
  return {
    name: NAME,
    position,
    anchor: anchor === undefined ? null : JSON.stringify(anchor),
    since_at: since.atMs,
    since_position: since.position,
    since_events: since.events,
  };
}
