import type { Collection, Db, IndexDescription } from 'mongodb';
import type { Position } from '../../../event-store/event-store.ts';
import { isDuplicateKey } from '../../../mongodb/prepared-collections.ts';
import { overlaps } from '../segments.ts';
import type { Bounds, Segment } from '../view-builds.ts';

export const SEGMENTS = 'view_segments';
export const SEGMENT_INDEXES: readonly IndexDescription[] = [
  { name: 'by_generation', key: { generation: 1, up_to: 1 } },
];

export interface SegmentDocument {
  /** `<generation>:<up_to>`. */
  readonly _id: string;
  readonly generation: number;
  readonly after: number;
  readonly up_to: number;
  readonly position: number;
  readonly events: number;
}

/** A bound that is noted is two writes: after a crash between them two segments overlap, and both are applied. */
export function segmentsOf(db: Db): Collection<SegmentDocument> {
  return db.collection(SEGMENTS);
}

export async function readSegments(db: Db, generation: number): Promise<Segment[]> {
  const found = await segmentsOf(db).find({ generation }).sort({ up_to: 1 }).toArray();
  return found.map(toSegment);
}

export async function planSegments(db: Db, generation: number, bounds: readonly Bounds[]): Promise<void> {
  const present: Bounds[] = await readSegments(db, generation);
  for (const one of bounds) {
    if (present.some((other) => overlaps(one, other))) continue;
    present.push(one);
    await insert(db, generation, { ...one, position: one.after, events: 0 });
  }
}

/** False where there is no such segment. */
export async function moveSegment(
  db: Db,
  generation: number,
  { upTo, position, events }: Omit<Segment, 'after'>,
): Promise<boolean> {
  const { matchedCount } = await segmentsOf(db).updateOne(
    { _id: idOf(generation, upTo) },
    { $max: { position }, $inc: { events } },
  );
  return matchedCount === 1;
}

export async function noteBound(db: Db, generation: number, position: Position): Promise<void> {
  const around = await segmentsOf(db).findOne({
    generation,
    after: { $lt: position },
    up_to: { $gte: position },
  });
  if (around === null) {
    const [last] = await segmentsOf(db).find({ generation }).sort({ up_to: -1 }).limit(1).toArray();
    const after = last?.up_to ?? 0;
    if (after < position) await insert(db, generation, { after, upTo: position, position, events: 0 });
    return;
  }
  if (around.up_to === position) return;
  const { after, position: applied, events } = around;
  await insert(db, generation, { after, upTo: position, position: Math.min(applied, position), events });
  await segmentsOf(db).updateOne(
    { _id: around._id },
    { $set: { after: position }, $max: { position }, $inc: { events: -events } },
  );
}

/** Nothing where another process has inserted it. */
async function insert(db: Db, generation: number, { after, upTo, position, events }: Segment): Promise<void> {
  const document = { _id: idOf(generation, upTo), generation, after, up_to: upTo, position, events };
  try {
    await segmentsOf(db).insertOne(document);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

function idOf(generation: number, upTo: Position): string {
  return `${generation}:${upTo}`;
}

function toSegment({ after, up_to: upTo, position, events }: SegmentDocument): Segment {
  return { after, upTo, position, events };
}
