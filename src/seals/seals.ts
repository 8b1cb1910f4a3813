import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { SealedLeaves } from '../domain/operations-events.ts';
import { OPERATIONS_STREAM, SEALS_STREAM } from '../domain/operations-events.ts';
import { transactionStream } from '../domain/transaction-events.ts';
import { authorOf, recordedAt } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { readOperation } from '../event-store/operations.ts';
import type { Position, RecordedEvent } from '../event-store/recorded-event.ts';
import type { Checkpoint } from './checkpoint.ts';
import { readCheckpoint } from './checkpoint.ts';
import type { Place } from './leaf.ts';
import { type Hash, TreeEdge } from './merkle-tree.ts';

/** Enough to tell two leaves of one seal apart, and little to store for each event. */
const PRINT_BYTES = 4;

/** A leaf as its seal has it: enough to name the first one that differs. */
export interface Print {
  readonly place: string;
  readonly print: string;
}

/** One `LogSealed`. */
export interface Seal {
  readonly size: number;
  readonly root: Hash;
  /** The signed note. */
  readonly note: string;
  readonly checkpoint: Checkpoint | undefined;
  readonly edge: readonly Hash[];
  /** Its last leaf. */
  readonly last: Place;
  /** Of the leaves since the seal before. */
  readonly prints: () => readonly Print[];
  readonly recorded: RecordedEvent;
}

/** An erased event that still counts as a leaf, by the event that erased it. */
export interface Gap extends Place {
  readonly index: number;
  readonly hash: Hash;
  readonly by: {
    readonly type: string;
    readonly at: string;
    readonly actor: string;
    readonly reason: string;
  };
}

export function placeOf({ stream, revision }: Place): string {
  return `${stream}@${revision}`;
}

export function printOf({ hash, ...place }: Place & { readonly hash: Hash }): Print {
  return {
    place: placeOf(place),
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

/** `undefined` for an event of another type, or one that can't be read. */
export function sealOf(recorded: RecordedEvent): Seal | undefined {
  const operation = readOperation(recorded);
  if (operation?.type !== 'LogSealed') return undefined;
  const { size, root, checkpoint: note, edge, last, leaves } = operation.data;
  return {
    ...{ size, root, note, last, edge, recorded },
    checkpoint: readCheckpoint(note),
    prints: () => unpackPrints(leaves),
  };
}

/** The newest seal; `undefined` before the first. */
export async function lastSeal(store: Pick<EventStore, 'readLast'>): Promise<Seal | undefined> {
  const last = await store.readLast(SEALS_STREAM);
  return last && sealOf(last);
}

/** Where the tree can be continued: the leaves before `size` stand up to `position`. */
export interface Anchor {
  readonly size: number;
  readonly edge: TreeEdge;
  readonly position: Position;
}

const BEGINNING = { size: 0, position: 0 } as const;

/**
 * The newest seal before a position from which the tree can be continued: its last leaf is still where it was. The
 * beginning of the log where there is none.
 */
export async function anchorBefore(
  store: Pick<EventStore, 'readStream' | 'readLast'>,
  position: Position = Number.MAX_SAFE_INTEGER,
): Promise<Anchor> {
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

/** What was erased or redacted, as the stream `operations` records it. */
export class Gaps {
  readonly #byIndex = new Map<number, Gap>();
  readonly #places = new Set<string>();
  readonly #erased = new Set<string>();
  /** Streams that were erased before erasures named their leaves: an engine may still show their events. */
  readonly #unnamed = new Set<string>();
  #next = 0;

  /** Reads what was recorded since the last time. */
  async read(store: Pick<EventStore, 'readStream'>): Promise<void> {
    for (const event of await store.readStream(OPERATIONS_STREAM, { fromRevision: this.#next })) {
      this.#next = event.revision + 1;
      const operation = readOperation(event);
      if (operation?.type === 'TransactionErased') {
        const stream = transactionStream(operation.data.transaction_id);
        this.#erased.add(stream);
        if (operation.data.leaves === undefined) this.#unnamed.add(stream);
      }
      if (operation?.type !== 'TransactionErased' && operation?.type !== 'DriverRedacted') continue;
      const by = {
        type: event.type,
        at: recordedAt(event),
        actor: authorOf(event),
        reason: operation.data.reason,
      };
      for (const leaf of operation.data.leaves ?? ([] as SealedLeaves)) {
        this.#byIndex.set(leaf.index, { ...leaf, by });
        this.#places.add(placeOf(leaf));
      }
    }
  }

  at(index: number): Gap | undefined {
    return this.#byIndex.get(index);
  }

  has(place: Place): boolean {
    return this.#places.has(placeOf(place));
  }

  isErased(stream: string): boolean {
    return this.#erased.has(stream);
  }

  isUnnamed(stream: string): boolean {
    return this.#unnamed.has(stream);
  }
}
