import type { Collection, Document } from 'mongodb';
import type { DeliveryDocument } from './collections.ts';

/** Lanes of one query: the server plans each of them, a tenth of a millisecond. */
const LANES_AT_ONCE = 50;

type Deliveries = Collection<DeliveryDocument>;

interface DueEntry {
  readonly id: string;
  readonly prefix: string;
}

/** The earliest due by a time, oldest first: read from the index `due` alone. */
export async function earliestDue(
  deliveries: Deliveries,
  { byMs, limit }: { readonly byMs: number; readonly limit: number },
): Promise<DueEntry[]> {
  const rows = await deliveries
    .find({ due_at: { $lte: byMs } }, { projection: { prefix: 1 }, hint: 'due' })
    .sort({ due_at: 1, prefix: 1 })
    .limit(limit)
    .toArray();
  return rows.map(({ _id, prefix }) => ({ id: _id, prefix }));
}

/** When the first delivery later than `laterThanMs` is due: the first entry of the index `due`. */
export async function firstDueAtMs(deliveries: Deliveries, laterThanMs: number): Promise<number | undefined> {
  const [first] = await deliveries
    .find({ due_at: { $gt: laterThanMs } }, { projection: { _id: 0, due_at: 1 }, hint: 'due' })
    .sort({ due_at: 1 })
    .limit(1)
    .toArray();
  return first?.due_at;
}

/** Lanes with something due by a time, the longest waiting first. One index entry for each lane is read. */
export async function dueLanes(deliveries: Deliveries, byMs: number): Promise<string[]> {
  const due = [{ $match: { due_at: { $lte: byMs } } }, { $sort: { due_at: 1, _id: 1 } }];
  const lanes = await deliveries
    .aggregate<{ _id: string }>([...laneHeads(), ...due], { hint: 'due_in_lane' })
    .toArray();
  return lanes.map(({ _id }) => _id);
}

/** When the next lane falls due of those with nothing due by a time. One index entry for each lane is read. */
export async function nextLaneDueAtMs(
  deliveries: Deliveries,
  laterThanMs: number,
): Promise<number | undefined> {
  const earliest = [
    { $match: { due_at: { $gt: laterThanMs } } },
    { $group: { _id: null, due_at: { $min: '$due_at' } } },
  ];
  const [first] = await deliveries
    .aggregate<{ due_at: number }>([...laneHeads(), ...earliest], { hint: 'due_in_lane' })
    .toArray();
  return first?.due_at;
}

/** The oldest due of these lanes, in the lanes' order, of each as many as it has free slots. */
export async function dueInLanes(
  deliveries: Deliveries,
  lanes: readonly string[],
  wanted: { readonly nowMs: number; readonly limit: number; readonly freeSlots: (prefix: string) => number },
): Promise<DueEntry[]> {
  const { nowMs, limit, freeSlots } = wanted;
  const chosen: DueEntry[] = [];
  let pipelines: Document[][] = [];
  const read = async (): Promise<void> => {
    const [first, ...others] = pipelines;
    pipelines = [];
    if (first === undefined) return;
    const unions = others.map((pipeline) => ({ $unionWith: { coll: deliveries.collectionName, pipeline } }));
    const rows = await deliveries.aggregate<DeliveryDocument>([...first, ...unions]).toArray();
    const due = rows.filter(({ due_at }) => due_at !== undefined && due_at <= nowMs);
    for (const { _id: id, prefix } of due.slice(0, limit - chosen.length)) chosen.push({ id, prefix });
  };
  for (const prefix of lanes) {
    const most = Math.min(freeSlots(prefix), limit - chosen.length);
    if (most <= 0) continue;
    pipelines.push(oldestOf(prefix, most));
    if (pipelines.length === LANES_AT_ONCE) await read();
    if (chosen.length === limit) return chosen;
  }
  await read();
  return chosen;
}

/** The first due time of each lane that has something pending: the index is searched once for each. */
export function laneHeads(): Document[] {
  return [
    { $match: { state: 'pending' } },
    { $sort: { state: 1, prefix: 1, due_at: 1 } },
    { $group: { _id: '$prefix', due_at: { $first: '$due_at' } } },
  ];
}

/** Not limited by time: with a limit the planner might read other lanes' entries of the index `due`. */
export function oldestOf(prefix: string, most: number): Document[] {
  return [
    { $match: { state: 'pending', prefix } },
    { $sort: { due_at: 1 } },
    { $limit: most },
    { $project: { prefix: 1, due_at: 1 } },
  ];
}
