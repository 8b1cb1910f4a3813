import type { RowState, TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { MAX_PARKED_READ } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { ViewChange } from '../../pull/record/project-event.ts';
import {
  assertServable,
  type BuildCheckpoint,
  type Checkpoint,
  canContinue,
  firstCheckpoint,
  isComplete,
  newerAnchor,
  notInUse,
  type ParkedTransactionEvent,
} from '../../pull/view/checkpoint.ts';
import {
  inListOrder,
  isAskedFor,
  type PageRow,
  type TransactionsView,
} from '../../pull/view/transactions-view.ts';
import { erasure, foldHistory, groupChanges } from '../stored/fold-changes.ts';
import { opening } from './opening.ts';

const NAME = 'the transactions view';

/** One view that was made: the served one, or the one that is built beside it. */
class Generation {
  readonly rows = new Map<number, RowState>();
  readonly parked = new Map<Position, ParkedTransactionEvent>();
  checkpoint: BuildCheckpoint;

  constructor(checkpoint: BuildCheckpoint) {
    this.checkpoint = checkpoint;
  }

  apply(changes: readonly ViewChange[], nowMs: number): ParkedTransactionEvent[] {
    const { histories, unreadable: parked } = groupChanges(changes, nowMs);
    for (const [id, history] of histories) {
      const { state, parked: illegal } = foldHistory(this.rows.get(id), history, nowMs);
      if (state !== undefined) this.rows.set(id, structuredClone(state));
      for (const event of illegal) parked.push(event);
    }
    for (const event of parked) this.parked.set(event.position, event);
    return parked.sort((a, b) => a.position - b.position);
  }

  replace(transactionId: number, changes: readonly ViewChange[], nowMs: number): void {
    const stream = transactionStream(transactionId);
    for (const event of this.parked.values()) if (event.stream === stream) this.parked.delete(event.position);
    this.rows.delete(transactionId);
    this.apply(changes, nowMs);
  }

  /** Ascending by id. */
  visible(afterId = -Infinity): TransactionRow[] {
    const rows = [...this.rows.values()].flatMap(({ shown }) => shown ?? []);
    return rows.filter(({ id }) => id > afterId).sort((a, b) => a.id - b.id);
  }
}

export class MemoryView {
  served: Generation | undefined;
  built: Generation | undefined;
  #last = 0;

  make(place: Pick<Checkpoint, 'storeId' | 'servesFrom'>, atMs: number): Generation {
    this.#last += 1;
    const since = { atMs, position: 0, events: 0 };
    return new Generation({ ...firstCheckpoint({ ...place, generation: this.#last }), since });
  }

  /** The one in use with this number. */
  find(generation: number): Generation | undefined {
    return [this.served, this.built].find((used) => used?.checkpoint.generation === generation);
  }
}

/** The transactions view in the memory of one thread: several openings share it. */
export function openMemoryView(view: MemoryView, clock: Clock): TransactionsView {
  const rowsAfter = (afterId: number, limit: number, generation?: number): TransactionRow[] =>
    structuredClone(read(generation)?.visible(afterId).slice(0, limit) ?? []);
  const read = (generation: number | undefined): Generation | undefined => {
    if (generation === undefined) return view.served;
    const found = view.find(generation);
    if (found === undefined) throw notInUse();
    return found;
  };
  const replace: TransactionsView['replace'] = async (transactionId, changes) => {
    for (const generation of [view.served, view.built])
      generation?.replace(transactionId, changes, clock.now());
  };
  return opening<Omit<TransactionsView, 'close'>>(NAME, {
    async page(query) {
      assertServable(view.served?.checkpoint);
      const found = (view.served?.visible() ?? []).filter((row) => isAskedFor(row, query));
      const rows = found.sort(inListOrder).map(pageRow);
      return {
        rows: rows.slice(0, query.limit),
        hasMore: rows.length > query.limit,
        entriesRead: Math.min(rows.length, query.limit + 1),
      };
    },
    async find(transactionIds, generation) {
      const rows = read(generation)?.rows;
      const known = transactionIds.map((id) => [id, rows?.get(id)] as const);
      return new Map(known.flatMap(([id, state]) => (state ? [[id, structuredClone(state)]] : [])));
    },
    rowsAfter: async (afterId, limit, generation) => rowsAfter(afterId, limit, generation),
    idsAfter: async (afterId, limit) => rowsAfter(afterId, limit).map(({ id }) => id),
    async parked({ after = 0, limit = MAX_PARKED_READ } = {}) {
      const later = [...(view.served?.parked.values() ?? [])].filter(({ position }) => position > after);
      return structuredClone(later.sort((a, b) => a.position - b.position).slice(0, limit));
    },
    countParked: async () => view.served?.parked.size ?? 0,
    checkpoint: async () => view.served && { ...view.served.checkpoint },
    building: async () => view.built && { ...view.built.checkpoint },
    async apply(changes, { generation, position, anchor }) {
      const target = view.find(generation);
      if (target === undefined) return 'reset';
      const { since, position: before, anchor: former } = target.checkpoint;
      const counted = { ...since, events: since.events + changes.length };
      target.checkpoint = {
        ...target.checkpoint,
        position: Math.max(before, position),
        anchor: newerAnchor(former, anchor),
        since: counted,
      };
      return target.apply(changes, clock.now());
    },
    async retry(changes) {
      for (const { position } of changes) view.served?.parked.delete(position);
      view.served?.apply(changes, clock.now());
    },
    replace,
    erase: (transactionId) => replace(transactionId, [erasure(transactionId)]),
    async reset(storeId, servesFrom) {
      view.served = view.make({ storeId, servesFrom }, clock.now());
      return { ...view.served.checkpoint };
    },
    async startBuild({ unusable, ...place }) {
      const continued = canContinue(view.built?.checkpoint, { ...place, unusable }) ? view.built : undefined;
      const built = continued ?? view.make(place, clock.now());
      const since = { atMs: clock.now(), position: built.checkpoint.position, events: 0 };
      built.checkpoint = { ...built.checkpoint, since };
      view.built = built;
      return { ...built.checkpoint };
    },
    async serveBuild(generation) {
      const found = view.find(generation);
      if (found === undefined || found === view.served) return found !== undefined;
      const isBehind = found.checkpoint.position < (view.served?.checkpoint.position ?? 0);
      if (!isComplete(found.checkpoint) || isBehind) return false;
      [view.served, view.built] = [found, undefined];
      return true;
    },
  });
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
