import type { RowState } from '../../../projections/transactions.ts';
import { transactionIdOf, transactionStream, VISIBLE_STATUSES } from '../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../domain/values/date-time.ts';
import { isRewritten } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { Damage } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { listPages } from '../../pull/view/list-rows.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { type Projected, projectEvent } from '../../records/project-event.ts';
import { type DifferenceKind, differenceFromEvents, foldRow } from './compare-row.ts';
import { IdSet } from './id-set.ts';
import { type Comparison, PART, type Side, SideJudge, type SideOptions } from './judge.ts';
import { isInScope, type ProjectedEvent } from './read-log.ts';

const IDS = 5_000;

export interface ViewSideOptions extends SideOptions {
  readonly view: TransactionsView;
  /**
   * If only a part of the log is read, the accounts whose pages since `sinceMs` are searched for rows without events.
   * Otherwise the whole view is searched.
   */
  readonly pagesOf?: Iterable<number> | undefined;
}

export interface ViewDifference {
  readonly transactionId: number;
  readonly kind: DifferenceKind;
}

export interface ViewAgreement {
  /** The number of transactions compared, without those that the view has not reached. */
  readonly checked: number;
  /** In the order of ids. */
  readonly differences: readonly ViewDifference[];
  /** Events that the view has applied and that can't be read any more. Their transactions are not judged. */
  readonly unreadable: readonly Damage[];
  /** How far the view has read the log. Later events are not judged. */
  readonly upTo: Position;
}

/** The transactions of a block that are asked for: those that begin in it with their changes, and the others. */
interface BlockStreams {
  readonly whole: ReadonlyMap<number, readonly Projected[]>;
  readonly partial: ReadonlySet<number>;
}

/**
 * Compares the view with what the events render to. Each block takes one bulk read of rows, and one of the streams that
 * are not completely in the block. A transaction counts in its last block, where its whole stream is known. What the view
 * has not reached at the end is not judged.
 */
export function viewJudge(options: ViewSideOptions): SideJudge<ViewAgreement> {
  return new SideJudge(new ViewSide(options), options);
}

class ViewSide implements Side<ViewAgreement> {
  readonly known = new IdSet();
  readonly #options: ViewSideOptions;
  readonly #damaged: DamagedStreams;
  #checked = 0;

  constructor(options: ViewSideOptions) {
    this.#options = options;
    this.#damaged = new DamagedStreams(options.damage);
  }

  async begin(block: readonly ProjectedEvent[]): Promise<Comparison> {
    const streams = this.#streamsOf(block);
    const [first] = block;
    return () => this.#compare(streams, first?.event.position ?? 0);
  }

  /** `from` is the position at which the block begins. */
  async #compare({ whole, partial }: BlockStreams, from: Position): Promise<readonly number[]> {
    const found = await this.#options.view.find([...whole.keys()]);
    const doubtful = [...partial];
    for (const [id, changes] of whole) {
      if (differenceFromEvents(foldRow(changes), found.get(id)) !== undefined) doubtful.push(id);
    }
    this.#checked += whole.size;
    const differing: number[] = [];
    for await (const { id, history, kind } of this.#compareStreams(doubtful)) {
      if (kind !== undefined) differing.push(id);
      const since = history.find((event) => isInScope(event, this.#options));
      if (partial.has(id) && since !== undefined && since.position >= from) this.#checked += 1;
    }
    return differing;
  }

  async settle(parts: AsyncGenerator<readonly number[]>): Promise<ViewAgreement> {
    const upTo = (await this.#options.view.checkpoint())?.position ?? 0;
    const differences: ViewDifference[] = [];
    const unreadable: Damage[] = [];
    let late = 0;
    for await (const part of parts) {
      for await (const { id, history, row, kind } of this.#compareStreams(part)) {
        if (kind === undefined || this.#damaged.has(transactionStream(id))) continue;
        if (history.some(({ position }) => position > upTo)) {
          late += 1;
          continue;
        }
        const lost = unreadableOf(row, history);
        // A row without events has no time, so it is always reported.
        const isAsked = history.length === 0 || history.some((event) => isInScope(event, this.#options));
        if (lost !== undefined) unreadable.push(lost);
        else if (isAsked) differences.push({ transactionId: id, kind });
      }
    }
    return { checked: Math.max(0, this.#checked - late), differences, unreadable, upTo };
  }

  #streamsOf(block: readonly ProjectedEvent[]): BlockStreams {
    const whole = new Map<number, Projected[]>();
    const partial = new Set<number>();
    const begun = new Map<number, Projected[]>();
    for (const { event, projected } of block) {
      const id = transactionIdOf(event.stream);
      if (id === undefined || (isRewritten(event) && this.known.has(id))) continue;
      this.known.add(id);
      if (event.revision === 0) begun.set(id, [projected]);
      else begun.get(id)?.push(projected);
      if (!isInScope(event, this.#options)) continue;
      const changes = begun.get(id);
      if (changes === undefined) partial.add(id);
      else whole.set(id, changes);
    }
    return { whole, partial };
  }

  /** Reads the rows before the streams, so that the events include everything that the view has applied. */
  async *#compareStreams(ids: readonly number[]) {
    const { store, view } = this.#options;
    const found = await view.find(ids);
    let index = 0;
    for await (const [, history] of readInParts(store, ids.map(transactionStream))) {
      const id = ids[index++] as number;
      const row = found.get(id);
      yield { id, history, row, kind: differenceFromEvents(foldRow(history.map(projectEvent)), row) };
    }
  }

  async *stored(): AsyncGenerator<readonly number[]> {
    const { view, accountId, sinceMs, pagesOf } = this.#options;
    const accounts = accountId === undefined ? pagesOf : [accountId];
    if (accounts === undefined) {
      let ids = await view.idsAfter(-1, IDS);
      for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
        yield ids;
        ids = await view.idsAfter(last, IDS);
      }
      return;
    }
    const fromMs = pagesOf === undefined ? EARLIEST_MS : (sinceMs ?? EARLIEST_MS);
    for (const id of accounts) {
      const query = { accountId: id, fromMs, toMs: LATEST_MS, statuses: VISIBLE_STATUSES };
      for await (const rows of listPages(view, query, PART)) yield rows.map((row) => row.id);
    }
  }
}

/** Returns the event that the row was last made from, if it can't be read any more. The row is all that is left of it. */
function unreadableOf(row: RowState | undefined, history: readonly RecordedEvent[]): Damage | undefined {
  const event = history.find(({ revision }) => revision === row?.revision);
  const change = event && projectEvent(event);
  if (event === undefined || change === undefined || !('parkReason' in change)) return undefined;
  const { position, stream, revision } = event;
  return { position, event: { stream, revision }, reason: change.parkReason, isCertain: false };
}
