import type { RowState } from '../../../projections/transactions.ts';
import { world } from '../../base/world.ts';
import { transactionIdOf, transactionStream, VISIBLE_STATUSES } from '../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../domain/values/date-time.ts';
import { isRewritten } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { projectEvent, type ViewChange } from '../../pull/record/project-event.ts';
import type { DifferenceKind } from '../../pull/view/build/compare.ts';
import { listRows } from '../../pull/view/list-rows.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { differenceFromEvents, foldRow } from './compare-row.ts';
import { IdSet } from './id-set.ts';
import { isInScope, type Judge, type ProjectedEvent, SETTLE_MS, type VerifyScope } from './read-log.ts';

const PART = 500;
const IDS = 10_000;

export interface ViewJudgeOptions extends VerifyScope {
  readonly store: EventStore;
  readonly view: TransactionsView;
  /** As the store found it: transactions that depend on a damaged event are not judged. */
  readonly damage?: readonly Damage[] | undefined;
  /**
   * Where only a part of the log is read: the accounts whose pages since `sinceMs` are searched for rows without
   * events. Otherwise the whole view is searched.
   */
  readonly pagesOf?: Iterable<number> | undefined;
  readonly settleMs?: number;
}

export interface ViewDifference {
  readonly transactionId: number;
  readonly kind: DifferenceKind;
}

export interface ViewAgreement {
  /** Transactions compared, without those that the view has not reached. */
  readonly checked: number;
  /** By id. */
  readonly differences: readonly ViewDifference[];
  /** Events that the view has applied and that can't be read now: their transactions are not judged. */
  readonly unreadable: readonly Damage[];
  /** How far the view has read the log: later events are not judged. */
  readonly upTo: Position;
}

export interface ViewFindings {
  readonly checked: number;
  readonly known: Float64Array;
  readonly suspects: readonly number[];
}

/**
 * Compares the view with what the events render to, block by block of the log: one bulk read of the rows for each
 * block, and one of the streams whose events are not all in it. A transaction counts by its last block, where its
 * whole stream is known. What differs is compared once more at the end, after a second, since the view follows the
 * log; what the view has not reached by then is not judged. In memory are the ids alone, eight bytes each.
 */
export class ViewJudge implements Judge {
  readonly #options: ViewJudgeOptions;
  /** Of the transactions that have events. */
  readonly #known = new IdSet();
  readonly #suspects = new Set<number>();
  readonly #damaged: DamagedStreams;
  #checked = 0;

  constructor(options: ViewJudgeOptions) {
    this.#options = options;
    this.#damaged = new DamagedStreams(options.damage);
  }

  async judge(block: readonly ProjectedEvent[]): Promise<void> {
    const { whole, partial } = this.#streamsOf(block);
    const found = await this.#options.view.find([...whole.keys()]);
    const doubtful = [...partial];
    for (const [id, changes] of whole) {
      if (differenceFromEvents(foldRow(changes), found.get(id)) !== undefined) doubtful.push(id);
    }
    this.#checked += whole.size;
    const [first] = block;
    for await (const { id, history, kind } of this.#judgeStreams(doubtful)) {
      if (kind !== undefined) this.#suspects.add(id);
      const since = history.find((event) => isInScope(event, this.#options));
      const isNew = since !== undefined && first !== undefined && since.position >= first.event.position;
      if (partial.has(id) && isNew) this.#checked += 1;
    }
  }

  /** What it found so far, for another judge to take over: another thread's, which has judged other blocks. */
  findings(): ViewFindings {
    return { checked: this.#checked, known: this.#known.values(), suspects: [...this.#suspects] };
  }

  takeOver({ checked, known, suspects }: ViewFindings): void {
    this.#checked += checked;
    this.#known.addAll(known);
    for (const id of suspects) this.#suspects.add(id);
  }

  /** Once the log was read. */
  async finish(): Promise<ViewAgreement> {
    const { view, settleMs } = this.#options;
    for await (const ids of this.#shownIds()) {
      for (const id of ids) if (!this.#known.has(id)) this.#suspects.add(id);
    }
    if (this.#suspects.size > 0) await world.sleep(settleMs ?? SETTLE_MS);
    const upTo = (await view.checkpoint())?.position ?? 0;
    const differences: ViewDifference[] = [];
    const unreadable: Damage[] = [];
    let late = 0;
    const suspects = [...this.#suspects].sort((a, b) => a - b);
    for await (const { id, history, row, kind } of this.#judgeStreams(suspects)) {
      if (kind === undefined || this.#damaged.has(transactionStream(id))) continue;
      if (history.some(({ position }) => position > upTo)) {
        late += 1;
        continue;
      }
      const lost = unreadableOf(row, history);
      if (lost !== undefined) {
        unreadable.push(lost);
        continue;
      }
      // A row without events has no time, so it is reported whatever the range.
      const isAsked = history.length === 0 || history.some((event) => isInScope(event, this.#options));
      if (isAsked) differences.push({ transactionId: id, kind });
    }
    return { checked: Math.max(0, this.#checked - late), differences, unreadable, upTo };
  }

  /**
   * The transactions of a block that are asked for: those that begin in it, with what it has of them, and the others.
   */
  #streamsOf(block: readonly ProjectedEvent[]) {
    const whole = new Map<number, ViewChange[]>();
    const partial = new Set<number>();
    const begun = new Map<number, ViewChange[]>();
    for (const { event, projected } of block) {
      const id = transactionIdOf(event.stream);
      if (id === undefined || (isRewritten(event) && this.#known.has(id))) continue;
      this.#known.add(id);
      if (event.revision === 0) begun.set(id, [projected]);
      else begun.get(id)?.push(projected);
      if (!isInScope(event, this.#options)) continue;
      const changes = begun.get(id);
      if (changes === undefined) partial.add(id);
      else whole.set(id, changes);
    }
    return { whole, partial };
  }

  /**
   * Compares transactions by their whole streams. Each row is read before its stream: what the view may have applied
   * since is then among the events.
   */
  async *#judgeStreams(ids: readonly number[]) {
    const { store, view } = this.#options;
    for (let at = 0; at < ids.length; at += PART) {
      const part = ids.slice(at, at + PART);
      const found = await view.find(part);
      const streams = part.map(transactionStream);
      let index = 0;
      for await (const [, history] of readInParts(store, streams)) {
        const id = part[index++] as number;
        const row = found.get(id);
        yield { id, history, row, kind: differenceFromEvents(foldRow(history.map(projectEvent)), row) };
      }
    }
  }

  async *#shownIds(): AsyncGenerator<readonly number[]> {
    const { view, accountId, sinceMs, pagesOf } = this.#options;
    const accounts = accountId === undefined ? pagesOf : [accountId];
    if (accounts !== undefined) {
      const fromMs = pagesOf === undefined ? EARLIEST_MS : (sinceMs ?? EARLIEST_MS);
      for (const id of accounts) {
        const query = { accountId: id, fromMs, toMs: LATEST_MS, statuses: VISIBLE_STATUSES };
        for await (const row of listRows(view, query, PART)) yield [row.id];
      }
      return;
    }
    let ids = await view.idsAfter(-1, IDS);
    for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
      yield ids;
      ids = await view.idsAfter(last, IDS);
    }
  }
}

/** The event that the row stands at, where it can't be read any more: then the row is what is left of it. */
function unreadableOf(row: RowState | undefined, history: readonly RecordedEvent[]): Damage | undefined {
  const event = history.find(({ revision }) => revision === row?.revision);
  const change = event && projectEvent(event);
  if (event === undefined || change === undefined || !('parkReason' in change)) return undefined;
  const { position, stream, revision } = event;
  return { position, event: { stream, revision }, reason: change.parkReason, isCertain: false };
}
