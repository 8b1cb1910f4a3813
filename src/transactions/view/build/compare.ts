import type { TransactionRow } from '../../../../projections/transactions.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { sameRow } from '../same-row.ts';
import type { TransactionsView } from '../transactions-view.ts';
import type { ViewBuild } from '../view-builds.ts';

const ROWS_PER_READ = 500;
const MAX_NAMED = 100;

type Rows = Pick<TransactionsView, 'find' | 'rowsAfter' | 'checkpoint'>;

export interface RowDifference {
  readonly transactionId: number;
  readonly accountId: number;
  /** Only the new view has it; only the served one has it; or they show it otherwise. */
  readonly kind: 'added' | 'removed' | 'changed';
}

/**
 * Compares a build with the served view, record by record, while both follow the log. What differs is a suspect: one of
 * them may not have applied its last event yet.
 */
export class ViewComparison {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #served: Rows;
  readonly #build: ViewBuild;
  #suspects: number[] = [];
  #records = 0;
  #differing = 0;
  readonly #named: RowDifference[] = [];

  constructor(options: {
    readonly store: Pick<EventStore, 'readStream'>;
    readonly served: Rows;
    readonly build: ViewBuild;
  }) {
    this.#store = options.store;
    this.#served = options.served;
    this.#build = options.build;
  }

  /** Visible in the new view. */
  get records(): number {
    return this.#records;
  }

  get differing(): number {
    return this.#differing;
  }

  /** The first hundred. */
  get named(): readonly RowDifference[] {
    return this.#named;
  }

  /** Walks both in the order of their ids. */
  async findSuspects(): Promise<void> {
    const served = new RowCursor(this.#served);
    const built = new RowCursor(this.#build);
    let [before, after] = [await served.next(), await built.next()];
    while (before !== undefined || after !== undefined) {
      const id = Math.min(before?.id ?? Infinity, after?.id ?? Infinity);
      const [one, other] = [before?.id === id ? before : undefined, after?.id === id ? after : undefined];
      if (kindOf(one, other) !== undefined) this.#suspects.push(id);
      if (one !== undefined) before = await served.next();
      if (other !== undefined) {
        this.#records += 1;
        after = await built.next();
      }
    }
  }

  /** Judges the suspects that both views have caught up with. True when none is left. */
  async judgeSuspects(): Promise<boolean> {
    const [served, build] = await Promise.all([this.#served.checkpoint(), this.#build.checkpoint()]);
    const reached = Math.min(served?.position ?? 0, build?.position ?? 0);
    const left: number[] = [];
    for (const id of this.#suspects) if (!(await this.#judge(id, reached))) left.push(id);
    this.#suspects = left;
    return left.length === 0;
  }

  async #judge(id: number, reached: number): Promise<boolean> {
    const stream = transactionStream(id);
    const last = (await this.#store.readStream(stream)).at(-1);
    if ((last?.position ?? 0) > reached) return false;
    const [before, after] = await Promise.all([rowOf(this.#served, id), rowOf(this.#build, id)]);
    const kind = kindOf(before, after);
    if (kind === undefined) return true;
    if ((await this.#store.readStream(stream)).at(-1)?.position !== last?.position) return false;
    this.#differing += 1;
    const accountId = (after ?? before)?.accountId ?? 0;
    if (this.#named.length < MAX_NAMED) this.#named.push({ transactionId: id, accountId, kind });
    return true;
  }
}

async function rowOf(rows: Rows, id: number): Promise<TransactionRow | undefined> {
  const found = await rows.find(id);
  return typeof found === 'object' ? found : undefined;
}

function kindOf(
  before: TransactionRow | undefined,
  after: TransactionRow | undefined,
): RowDifference['kind'] | undefined {
  if (before === undefined) return after === undefined ? undefined : 'added';
  if (after === undefined) return 'removed';
  return sameRow(before, after) ? undefined : 'changed';
}

/** The visible rows of a view, by ascending id. */
class RowCursor {
  readonly #rows: Rows | ViewBuild;
  #read: readonly TransactionRow[] = [];
  #next = 0;
  #lastId = -1;

  constructor(rows: Rows | ViewBuild) {
    this.#rows = rows;
  }

  async next(): Promise<TransactionRow | undefined> {
    if (this.#next === this.#read.length) {
      this.#read = await this.#rows.rowsAfter(this.#lastId, ROWS_PER_READ);
      this.#next = 0;
    }
    const row = this.#read[this.#next++];
    if (row !== undefined) this.#lastId = row.id;
    return row;
  }
}
