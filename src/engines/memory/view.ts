import {
  idOfChange,
  RENDERING_VERSION,
  type TransactionChange,
  type TransactionRow,
  transition,
} from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { ERASED_REVISION, MAX_PARKED_READ, type Position } from '../../event-store/event-store.ts';
import type { ViewChange } from '../../pull/record/project-event.ts';
import { type BuildCheckpoint, isComplete, type ParkedTransactionEvent } from '../../pull/view/checkpoint.ts';
import type { PageQuery, PageRow, TransactionsView } from '../../pull/view/transactions-view.ts';
import type { ViewBuild } from '../../pull/view/view-build.ts';
import { opening } from './opening.ts';

const NAME = 'the transactions view';

/** A row, or the tombstone of one: `shown` is `null`. */
interface Entry {
  readonly accountId: number;
  readonly revision: number;
  readonly shown: TransactionRow | null;
}

/** One view that was made: the served one, or the one that is built beside it. */
class Generation {
  readonly rows = new Map<number, Entry>();
  readonly parked = new Map<Position, ParkedTransactionEvent>();
  checkpoint: BuildCheckpoint;

  constructor(checkpoint: BuildCheckpoint) {
    this.checkpoint = checkpoint;
  }

  apply(changes: readonly ViewChange[], nowMs: number): ParkedTransactionEvent[] {
    return changes.flatMap((change) => {
      const { position, stream, type } = change;
      const reason = 'parkReason' in change ? change.parkReason : this.#applyOne(change.change);
      if (reason === undefined) return [];
      const { revision } = 'parkReason' in change ? change : change.change;
      const event = { position, stream, revision, type, reason, parkedAtMs: nowMs };
      this.parked.set(position, event);
      return [event];
    });
  }

  erase(transactionId: number): void {
    this.rows.set(transactionId, { accountId: 0, revision: ERASED_REVISION, shown: null });
    this.unpark(transactionId);
  }

  unpark(transactionId: number): void {
    const stream = transactionStream(transactionId);
    for (const event of this.parked.values()) if (event.stream === stream) this.parked.delete(event.position);
  }

  /** Ascending by id. */
  visible(afterId = -Infinity): TransactionRow[] {
    const rows = [...this.rows.values()].flatMap(({ shown }) => shown ?? []);
    return rows.filter(({ id }) => id > afterId).sort((a, b) => a.id - b.id);
  }

  find(transactionId: number): TransactionRow | 'hidden' | undefined {
    const entry = this.rows.get(transactionId);
    return entry === undefined ? undefined : (structuredClone(entry.shown) ?? 'hidden');
  }

  /** Why the change can't follow those before it; `undefined` where it was applied or is stale. */
  #applyOne(change: TransactionChange): string | undefined {
    const id = idOfChange(change);
    const verdict = transition(this.rows.get(id), change);
    if (typeof verdict === 'object') return verdict.illegal;
    if (verdict === 'stale') return undefined;
    if (change.kind === 'erase') this.erase(id);
    else {
      const shown = change.kind === 'show' ? structuredClone(change.row) : null;
      const { accountId } = change.kind === 'show' ? change.row : change;
      this.rows.set(id, { accountId, revision: change.revision, shown });
    }
    return undefined;
  }
}

export class MemoryView {
  served: Generation | undefined;
  built: Generation | undefined;
  #last = 0;

  make(storeId: string, servesFrom: Position, atMs: number): Generation {
    this.#last += 1;
    const since = { atMs, position: 0, events: 0 };
    const place = { storeId, position: 0, servesFrom, generation: this.#last, rendering: RENDERING_VERSION };
    return new Generation({ ...place, since });
  }

  /** The one in use with this number. */
  find(generation: number): Generation | undefined {
    return [this.served, this.built].find((used) => used?.checkpoint.generation === generation);
  }
}

/** The transactions view in the memory of one thread: several openings share it. */
export function openMemoryView(view: MemoryView, clock: Clock): TransactionsView {
  const { rows, ...rest } = buildOf(view, clock);
  const { close, ...guarded } = opening(NAME, rest);
  const build = { ...guarded, rows };
  const methods: Omit<TransactionsView, 'build' | 'close'> = {
    async page(query) {
      if (view.served === undefined || !isComplete(view.served.checkpoint))
        throw new FuelError('STORE_UNAVAILABLE', `${NAME} is being built`);
      const found = view.served.visible().filter(matching(query));
      const rows = found.sort((a, b) => b.createdAtMs - a.createdAtMs || b.id - a.id).map(pageRow);
      return {
        rows: rows.slice(0, query.limit),
        hasMore: rows.length > query.limit,
        entriesRead: Math.min(rows.length, query.limit + 1),
      };
    },
    find: async (transactionId) => view.served?.find(transactionId),
    async findMany(transactionIds) {
      const known = transactionIds.flatMap((id) => {
        const entry = view.served?.rows.get(id);
        return entry === undefined ? [] : [[id, entry] as const];
      });
      return new Map(
        known.map(([id, { revision, shown }]) => [id, { revision, row: structuredClone(shown) ?? 'hidden' }]),
      );
    },
    rowsAfter: async (afterId, limit) => rowsAfter(view.served, afterId, limit),
    idsAfter: async (afterId, limit) => rowsAfter(view.served, afterId, limit).map(({ id }) => id),
    async checkpoint() {
      if (view.served === undefined) return undefined;
      return { ...view.served.checkpoint };
    },
    async reset(storeId, servesFrom) {
      view.served = view.make(storeId, servesFrom, clock.now());
      return { ...view.served.checkpoint };
    },
    async apply(changes, { generation, position }) {
      const target = view.find(generation);
      if (target === undefined) return 'reset';
      const { since, position: before } = target.checkpoint;
      const counted = { ...since, events: since.events + changes.length };
      target.checkpoint = { ...target.checkpoint, position: Math.max(before, position), since: counted };
      return target.apply(changes, clock.now());
    },
    async parked({ after = 0, limit = MAX_PARKED_READ } = {}) {
      const later = [...(view.served?.parked.values() ?? [])].filter(({ position }) => position > after);
      return structuredClone(later.sort((a, b) => a.position - b.position).slice(0, limit));
    },
    countParked: async () => view.served?.parked.size ?? 0,
    async retry(changes) {
      for (const { position } of changes) view.served?.parked.delete(position);
      view.served?.apply(changes, clock.now());
    },
    async erase(transactionId) {
      for (const generation of [view.served, view.built]) generation?.erase(transactionId);
    },
    async replace(transactionId, changes) {
      view.served?.rows.delete(transactionId);
      view.served?.unpark(transactionId);
      view.served?.apply(changes, clock.now());
    },
  };
  return { ...opening(NAME, { ...methods, build }, () => void close()), build };
}

function buildOf(view: MemoryView, clock: Clock): ViewBuild {
  return {
    checkpoint: async () => view.built && { ...view.built.checkpoint },
    async start(storeId, servesFrom) {
      const present = view.built?.checkpoint;
      const continues = present?.storeId === storeId && present.rendering === RENDERING_VERSION;
      const built = (continues && view.built) || view.make(storeId, servesFrom, clock.now());
      const since = { atMs: clock.now(), position: built.checkpoint.position, events: 0 };
      built.checkpoint = { ...built.checkpoint, since };
      view.built = built;
      return { ...built.checkpoint };
    },
    rows(generation) {
      const found = view.find(generation);
      if (found === undefined)
        throw new FuelError('REFUSED', 'another view is served, or being built, by now');
      return {
        find: async (transactionId) => found.find(transactionId),
        rowsAfter: async (afterId, limit) => rowsAfter(found, afterId, limit),
      };
    },
    async serve(generation) {
      const found = view.find(generation);
      if (found === undefined || found === view.served) return found !== undefined;
      const isBehind = found.checkpoint.position < (view.served?.checkpoint.position ?? 0);
      if (!isComplete(found.checkpoint) || isBehind) return false;
      [view.served, view.built] = [found, undefined];
      return true;
    },
  };
}

function rowsAfter(generation: Generation | undefined, afterId: number, limit: number): TransactionRow[] {
  return structuredClone(generation?.visible(afterId).slice(0, limit) ?? []);
}

function matching({ accountId, fromMs, toMs, corporateGroupId, corporateIds, statuses, after }: PageQuery) {
  return (row: TransactionRow): boolean =>
    row.accountId === accountId &&
    row.createdAtMs >= fromMs &&
    row.createdAtMs <= toMs &&
    (corporateGroupId === undefined || row.corporateGroupId === corporateGroupId) &&
    (corporateIds === undefined || corporateIds.includes(row.corporateId)) &&
    statuses.includes(row.status) &&
    (after === undefined ||
      row.createdAtMs < after.createdAtMs ||
      (row.createdAtMs === after.createdAtMs && row.id < after.id));
}

function pageRow({ id, createdAtMs, head, mobileNumber, fees, pump, odometer }: TransactionRow): PageRow {
  const number = mobileNumber === null ? null : Buffer.from(mobileNumber);
  return {
    id,
    createdAtMs,
    head: Buffer.from(head),
    mobileNumber: number,
    fees: Buffer.from(fees),
    pump,
    odometer,
  };
}
