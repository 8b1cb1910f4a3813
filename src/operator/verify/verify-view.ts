import type { RowState } from '../../../projections/transactions.ts';
import { transactionStream, VISIBLE_STATUSES } from '../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../domain/values/date-time.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { listPages } from '../../pull/view/list-rows.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { type ReadUp, type Side, type TransactionStream, wholeStreams } from './compare-log.ts';
import { type DifferenceKind, differenceFromEvents, foldRow } from './compare-row.ts';
import { IdSet } from './id-set.ts';
import { isInScope, type VerifyScope } from './read-log.ts';

/** How many rows of a page are read at once. */
const ROWS = 200;
const IDS = 5_000;

export interface ViewSideOptions extends VerifyScope {
  readonly store: EventStore;
  readonly view: TransactionsView;
  /**
   * If only a part of the log is read, the accounts whose pages since `sinceMs` are searched for rows without events.
   * Otherwise the whole view is searched.
   */
  readonly pagesOf?: Iterable<number> | AsyncIterable<number> | undefined;
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

/** Compares the view with what the events render to. What the view has not reached at the end is not judged. */
export class ViewSide implements Side {
  readonly #options: ViewSideOptions;
  readonly #checked = new IdSet();
  readonly #differences: ViewDifference[] = [];
  readonly #unreadable: Damage[] = [];
  #upTo: Position = 0;
  #late = 0;

  constructor(options: ViewSideOptions) {
    this.#options = options;
  }

  /** The result, once all rows are compared. */
  get agreement(): ViewAgreement {
    const checked = Math.max(0, this.#checked.size - this.#late);
    return { checked, differences: this.#differences, unreadable: this.#unreadable, upTo: this.#upTo };
  }

  async find(ids: readonly number[]) {
    const rows = await this.#options.view.find(ids);
    return async (streams: readonly TransactionStream[]): Promise<readonly number[]> => {
      for (const stream of streams) if (this.#isAsked(stream)) this.#checked.add(stream.id);
      return streams
        .filter((stream) => differenceOf(stream, rows.get(stream.id)) !== undefined)
        .map(({ id }) => id);
    };
  }

  /** Reads the rows before the streams, so that the events include everything that the view has applied. */
  async settle(parts: AsyncIterable<readonly number[]>, { damaged }: ReadUp): Promise<void> {
    const { store, view } = this.#options;
    this.#upTo = (await view.checkpoint())?.position ?? 0;
    for await (const part of parts) {
      const rows = await view.find(part);
      for (const stream of await wholeStreams(store, part)) {
        const { id, events } = stream;
        const kind = differenceOf(stream, rows.get(id));
        if (kind === undefined || damaged.has(transactionStream(id))) continue;
        if (events.some(({ event }) => event.position > this.#upTo)) {
          this.#late += 1;
          continue;
        }
        const lost = unreadableOf(rows.get(id), stream);
        if (lost !== undefined) this.#unreadable.push(lost);
        // A row without events has no time, so it is always reported.
        else if (events.length === 0 || this.#isAsked(stream))
          this.#differences.push({ transactionId: id, kind });
      }
    }
  }

  #isAsked({ events }: TransactionStream): boolean {
    return events.some(({ event }) => isInScope(event, this.#options));
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
    for await (const id of accounts) {
      const query = { accountId: id, fromMs, toMs: LATEST_MS, statuses: VISIBLE_STATUSES };
      for await (const rows of listPages(view, query, ROWS)) yield rows.map((row) => row.id);
    }
  }
}

function differenceOf({ events }: TransactionStream, row: RowState | undefined): DifferenceKind | undefined {
  return differenceFromEvents(foldRow(events.map(({ projected }) => projected)), row);
}

/** Returns the event that the row was last made from, if it can't be read any more. The row is all that is left of it. */
function unreadableOf(row: RowState | undefined, { events }: TransactionStream): Damage | undefined {
  const last = events.find(({ event }) => event.revision === row?.revision);
  if (last === undefined || !('parkReason' in last.projected)) return undefined;
  const { position, stream, revision } = last.event;
  return { position, event: { stream, revision }, reason: last.projected.parkReason, isCertain: false };
}
