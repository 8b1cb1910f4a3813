import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { FuelError } from '../base/errors.ts';
import { SEALS_STREAM } from '../domain/operations-events.ts';
import { decodeStrict } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { readOperation } from '../event-store/operations.ts';
import {
  type EventRef,
  type Position,
  type RecordedEvent,
  textOfRef,
} from '../event-store/recorded-event.ts';
import { type LogCheckpoint, readCheckpoint } from './checkpoint.ts';
import { type Hash, TreeEdge } from './merkle-tree.ts';

/** The bytes of a print: enough to distinguish the leaves of one seal, and little to store for each event. */
const PRINT_BYTES = 4;

/** A leaf as its seal lists it, which is enough to find the first one that differs. */
export interface Print {
  readonly place: string;
  readonly print: string;
}

/** A `LogSealed` event. */
export interface Seal {
  readonly size: number;
  readonly root: Hash;
  /** The signed note. */
  readonly note: string;
  readonly checkpoint: LogCheckpoint | undefined;
  readonly edge: readonly Hash[];
  /** The last leaf that it covers. */
  readonly last: EventRef;
  /** The prints of the leaves since the previous seal. */
  readonly prints: () => readonly Print[];
  readonly recorded: RecordedEvent;
}

export function printOf({ hash, ...event }: EventRef & { readonly hash: Hash }): Print {
  return {
    place: textOfRef(event),
    print: Buffer.from(hash, 'base64').toString('base64url', 0, PRINT_BYTES),
  };
}

export function packPrints(prints: readonly Print[]): string {
  const text = prints.map(({ place, print }) => `${place} ${print}`).join('\n');
  return deflateRawSync(text).toString('base64');
}

function unpackPrints(packed: string): Print[] {
  const text = inflateRawSync(Buffer.from(packed, 'base64')).toString();
  return text.split('\n').map((line) => {
    const at = line.lastIndexOf(' ');
    return { place: line.slice(0, at), print: line.slice(at + 1) };
  });
}

/** Reads a seal from an event; `undefined` for an event of another type or one that can't be read. */
export function sealOf(recorded: RecordedEvent): Seal | undefined {
  const operation = readOperation(recorded);
  if (operation?.type !== 'LogSealed') return undefined;
  const { size, root, checkpoint: note, edge, last, leaves } = operation.data;
  return {
    size,
    root,
    note,
    last,
    edge,
    recorded,
    checkpoint: readCheckpoint(note),
    prints: () => unpackPrints(leaves),
  };
}

/** Reads the newest seal; `undefined` if there is none yet. Rejects with `REFUSED` if that event is not a readable seal. */
export async function lastSeal(store: Pick<EventStore, 'readLast'>): Promise<Seal | undefined> {
  const last = await store.readLast(SEALS_STREAM);
  if (last === undefined) return undefined;
  const seal = sealOf(last);
  if (seal !== undefined) return seal;
  const decoded = decodeStrict(last);
  throw new FuelError(
    'REFUSED',
    `the newest seal, ${textOfRef(last)}, cannot be read: ${decoded.ok ? `it is ${decoded.type}` : decoded.reason}. ` +
      'If a newer version wrote it, run that version; otherwise restore the events from a backup',
  );
}

/** A place where the tree can be continued: its first `size` leaves are in the log up to `position`. */
export interface TreeStart {
  readonly size: number;
  readonly edge: TreeEdge;
  readonly position: Position;
}

const BEGINNING = { size: 0, position: 0 } as const;

/**
 * Finds the newest seal before a position from which the tree can be continued, since its last leaf is still where it
 * was. Returns the beginning of the log if there is none.
 */
export async function treeStartBefore(
  store: Pick<EventStore, 'readStream' | 'readLast'>,
  position: Position = Number.MAX_SAFE_INTEGER,
): Promise<TreeStart> {
  let [low, high] = [0, ((await store.readLast(SEALS_STREAM))?.revision ?? -1) + 1];
  const at = async (revision: number): Promise<RecordedEvent | undefined> =>
    (await store.readStream(SEALS_STREAM, { fromRevision: revision, limit: 1 }))[0];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (((await at(middle))?.position ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  for (let revision = low - 1; revision >= 0; revision--) {
    const event = await at(revision);
    const seal = event && sealOf(event);
    if (seal === undefined) continue;
    const [last] = await store.readStream(seal.last.stream, { fromRevision: seal.last.revision, limit: 1 });
    if (last === undefined || last.revision !== seal.last.revision || last.position >= position) continue;
    return { size: seal.size, edge: new TreeEdge(seal.size, seal.edge), position: last.position };
  }
  return { ...BEGINNING, edge: new TreeEdge() };
}
