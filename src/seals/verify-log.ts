import type { Rest } from '../base/pause.ts';
import { SEALS_STREAM } from '../domain/operations-events.ts';
import { occurredAt } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { operationsOf } from '../event-store/operations.ts';
import { readToEnd } from '../event-store/reads.ts';
import { type EventRef, textOfRef } from '../event-store/recorded-event.ts';
import type { LogCheckpoint, LogVerifier } from './checkpoint.ts';
import { firstHidden } from './hidden-event.ts';
import { type Leaf, leavesAfter } from './leaves.ts';
import { type Hash, TreeEdge } from './merkle-tree.ts';
import { type Print, printOf, type Seal, sealOf } from './seals.ts';

export interface LogVerification {
  /** The number of leaves that were compared, erased events included. */
  readonly leaves: number;
  /** The size of the log's tree as far as it was read. */
  readonly size: number;
  readonly root: string;
  readonly seals: number;
  /** The size of the newest seal; 0 if nothing is sealed. */
  readonly sealedSize: number;
  readonly sealedAt: string | null;
  readonly sealedRoot: string;
  /** The erased events, grouped by erasure. */
  readonly erased: readonly {
    readonly events: number;
    readonly at: string;
    readonly actor: string;
    readonly reason: string;
  }[];
  /** `undefined` if the log is what was sealed and what the checkpoint says. */
  readonly fault: LogFault | undefined;
}

/** The first fault in the order of the log. `place` is an event's stream and revision. */
export type LogFault =
  | {
      readonly kind: 'differs' | 'missing' | 'inserted' | 'moved';
      readonly place: string;
      readonly index: number;
    }
  /** The log contains the event, but its stream does not show it. */
  | { readonly kind: 'hidden'; readonly place: string }
  /** A seal can't be read, so what it covers is not proven. */
  | { readonly kind: 'unreadable'; readonly place: string }
  /** The seal of this size was not signed by the key, or does not fit the log before it. */
  | { readonly kind: 'seal'; readonly size: number; readonly reason: string }
  /** The log does not fit the given checkpoint. */
  | { readonly kind: 'checkpoint'; readonly size: number; readonly reason: string };

export interface LogVerificationOptions {
  readonly store: EventStore;
  readonly key: LogVerifier;
  /** A checkpoint kept elsewhere, whose signature has been checked. */
  readonly checkpoint?: Pick<LogCheckpoint, 'size' | 'root'> | undefined;
  /** Starts at the newest seal up to this size; everything before it counts as proven. */
  readonly since?: number | undefined;
  readonly onProgress?: (events: number) => void;
  readonly signal?: AbortSignal | undefined;
  readonly rest?: Rest | undefined;
}

/**
 * Reads the log, computes its tree again, and compares it with each seal and with the checkpoint, up to the first
 * fault. It keeps only the tree's edge, the leaves since the last seal, and the erasures in memory.
 */
export async function verifyLog(options: LogVerificationOptions): Promise<LogVerification> {
  const { store, since = 0, onProgress, signal, rest } = options;
  const { gaps } = await operationsOf(store);
  const run = new Verification(options);
  const seals = sealsOf(options, (place) => run.found({ kind: 'unreadable', place }));
  try {
    let seal = await run.startAt(seals, since);
    const deleted = new Set<string>();
    for await (const leaves of leavesAfter(store, run.start, { gaps, deleted, signal })) {
      for (const leaf of leaves) {
        run.take(leaf);
        while (run.fault === undefined && seal?.size === run.size) {
          await run.compare(seal);
          seal = await nextOf(seals);
        }
        if (run.fault !== undefined) return run.result();
      }
      onProgress?.(run.size);
      await rest?.();
    }
    if (seal !== undefined) await run.cut(seal);
    run.end();
    const hidden = await firstHidden(store, gaps, { deleted, after: run.start.position, signal });
    if (hidden !== undefined) run.found({ kind: 'hidden', place: hidden });
    return run.result();
  } finally {
    await seals.return();
  }
}

async function* sealsOf(
  { store, signal }: LogVerificationOptions,
  onUnreadable: (place: string) => void,
): AsyncGenerator<Seal, void> {
  const all = { prefixes: [SEALS_STREAM], after: 0, signal };
  for await (const { events } of readToEnd(store, all)) {
    for (const event of events) {
      if (event.stream !== SEALS_STREAM) continue;
      const seal = sealOf(event);
      if (seal === undefined) onUnreadable(textOfRef(event));
      else yield seal;
    }
  }
}

async function nextOf(seals: AsyncGenerator<Seal, void>): Promise<Seal | undefined> {
  return (await seals.next()).value ?? undefined;
}

class Verification {
  readonly #options: LogVerificationOptions;
  readonly #erased = new Map<string, { events: number; at: string; actor: string; reason: string }>();
  /** The leaves since the last seal. */
  #passed: (EventRef & { readonly hash: Hash })[] = [];
  #edge = new TreeEdge();
  #lastSeal: Seal | undefined;
  #seals = 0;
  #leaves = 0;
  #isCompared = false;
  start = { size: 0, position: 0 };
  fault: LogFault | undefined;

  constructor(options: LogVerificationOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#edge.size;
  }

  /** Moves to the newest signed seal up to `since`. Returns the next seal to compare. */
  async startAt(seals: AsyncGenerator<Seal, void>, since: number): Promise<Seal | undefined> {
    const { store, key } = this.#options;
    let next = await nextOf(seals);
    for (; next !== undefined && next.size <= since; next = await nextOf(seals)) {
      const edge = new TreeEdge(next.size, next.edge);
      const { stream, revision } = next.last;
      const [last] = await store.readStream(stream, { fromRevision: revision, limit: 1 });
      if (last?.revision !== revision || edge.root !== next.root || key.open(next.note) === undefined)
        continue;
      this.#edge = edge;
      this.#lastSeal = next;
      this.start = { size: next.size, position: last.position };
      const first = await nextOf(seals);
      if (first === undefined || first.size > since) {
        this.#compareCheckpoint();
        return first;
      }
      next = first;
    }
    return next;
  }

  take({ stream, revision, hash, event, gap }: Leaf): void {
    this.#edge.append(hash);
    this.#passed.push({ stream, revision, hash });
    this.#leaves += 1;
    if (gap !== undefined && event === undefined) {
      const { at, actor, reason } = gap.by;
      const known = this.#erased.get(at + actor + reason) ?? { events: 0, at, actor, reason };
      known.events += 1;
      this.#erased.set(at + actor + reason, known);
    }
    this.#compareCheckpoint();
  }

  /** Compares the seal of the current size with the tree. */
  async compare(seal: Seal): Promise<void> {
    const signed = this.#options.key.open(seal.note);
    const { size } = seal;
    if (signed === undefined) {
      this.found({ kind: 'seal', size, reason: `it is not signed by ${this.#options.key}` });
    } else if (this.#edge.root !== seal.root || signed.size !== size || signed.root !== seal.root) {
      this.fault = (await this.#firstDifference(seal)) ?? {
        kind: 'seal',
        size,
        reason: 'it does not fit the events before it',
      };
    } else {
      this.#seals += 1;
      this.#lastSeal = seal;
      this.#passed = [];
    }
  }

  /** Reports that the log ends before the size of this seal, so events are missing. */
  async cut(seal: Seal): Promise<void> {
    this.fault ??= (await this.#firstDifference(seal)) ?? {
      kind: 'seal',
      size: seal.size,
      reason: `the log has ${this.size} events, and ${seal.size} were sealed`,
    };
  }

  /** Reports a fault. Only the first one counts. */
  found(fault: LogFault): void {
    this.fault ??= fault;
  }

  end(): void {
    const { checkpoint } = this.#options;
    if (checkpoint === undefined || this.#isCompared) return;
    const reason =
      checkpoint.size > this.size
        ? `the log has ${this.size} events, and had ${checkpoint.size}: its end was cut off`
        : 'it covers a part that was left out. Start before it with --since';
    this.found({ kind: 'checkpoint', size: checkpoint.size, reason });
  }

  result(): LogVerification {
    return {
      leaves: this.#leaves,
      size: this.size,
      root: this.#edge.root,
      seals: this.#seals,
      sealedSize: this.#lastSeal?.size ?? 0,
      sealedRoot: this.#lastSeal?.root ?? '',
      sealedAt: this.#lastSeal === undefined ? null : occurredAt(this.#lastSeal.recorded),
      erased: [...this.#erased.values()],
      fault: this.fault,
    };
  }

  #compareCheckpoint(): void {
    const { checkpoint } = this.#options;
    if (checkpoint?.size !== this.size) return;
    this.#isCompared = true;
    if (this.#edge.root !== checkpoint.root)
      this.found({
        kind: 'checkpoint',
        size: checkpoint.size,
        reason: 'the log was different then, and its seals were replaced',
      });
  }

  /** Finds the first leaf that differs from the prints of the seal. */
  async #firstDifference(seal: Seal): Promise<LogFault | undefined> {
    const expected = readPrints(seal);
    const from = seal.size - expected.length;
    const found = this.#passed.slice(this.#passed.length - (this.size - from)).map(printOf);
    const [wanted, present] = [placesOf(expected), placesOf(found)];
    for (let at = 0; at < Math.max(expected.length, found.length); at++) {
      const [was, is] = [expected[at], found[at]];
      if (was?.place === is?.place && was?.print === is?.print) continue;
      const index = from + at;
      // An event that is not found in this part may have been pushed out of it by an inserted one.
      if (was !== undefined && !present.has(was.place) && !(await this.#exists(was.place)))
        return { kind: 'missing', place: was.place, index };
      const place = is?.place ?? '';
      if (!wanted.has(place)) return { kind: 'inserted', place, index };
      return { kind: was?.place === place ? 'differs' : 'moved', place, index };
    }
    return undefined;
  }

  async #exists(place: string): Promise<boolean> {
    const at = place.lastIndexOf('@');
    const revision = Number(place.slice(at + 1));
    const range = { fromRevision: revision, limit: 1 };
    const [found] = await this.#options.store.readStream(place.slice(0, at), range);
    return found?.revision === revision;
  }
}

function placesOf(prints: readonly Print[]): ReadonlySet<string> {
  return new Set(prints.map(({ place }) => place));
}

/** Returns the prints of a seal; none if they were changed, which the next seal shows. */
function readPrints(seal: Seal): readonly Print[] {
  try {
    return seal.prints();
  } catch {
    return [];
  }
}
