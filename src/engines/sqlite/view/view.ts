import { RENDERING_VERSION, type TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import { MAX_PARKED_READ, type Position } from '../../../event-store/event-store.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import type { StoredRow, ViewRows } from '../../../pull/view/bulk-reads.ts';
import {
  type BuildCheckpoint,
  type Checkpoint,
  isComplete,
  type ParkedTransactionEvent,
} from '../../../pull/view/checkpoint.ts';
import type {
  PageQuery,
  ParkedPage,
  TransactionsView,
  ViewPage,
} from '../../../pull/view/transactions-view.ts';
import type { ViewBuild } from '../../../pull/view/view-build.ts';
import { GenerationFiles } from './files.ts';
import type { SqliteGeneration } from './generation.ts';

/** The transactions view in SQLite files (see `GenerationFiles`). Everything runs on the calling thread. */
export function openSqliteView(options: {
  readonly path: string;
  readonly clock: Clock;
}): SqliteTransactionsView {
  return new SqliteTransactionsView(options.path, options.clock);
}

export class SqliteTransactionsView implements TransactionsView {
  readonly build: ViewBuild;
  readonly #files: GenerationFiles;

  constructor(path: string, clock: Clock) {
    this.#files = new GenerationFiles(path, clock);
    this.build = new SqliteViewBuild(this.#files);
    this.#files.served(); // creates the file, or refuses a newer one
  }

  async page(query: PageQuery): Promise<ViewPage> {
    return this.#files.served().page(query);
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    return this.#files.served().rows.find(transactionId);
  }

  async findMany(transactionIds: readonly number[]): Promise<ReadonlyMap<number, StoredRow>> {
    return this.#files.served().bulk.findMany(transactionIds);
  }

  async rowsAfter(afterId: number, limit: number): Promise<TransactionRow[]> {
    return this.#files.served().bulk.rowsAfter(afterId, limit);
  }

  async idsAfter(afterId: number, limit: number): Promise<number[]> {
    return this.#files.served().bulk.idsAfter(afterId, limit);
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return this.#files.served().read();
  }

  async reset(storeId: string, servesFrom: Position): Promise<Checkpoint> {
    return this.#files.served().reset(storeId, servesFrom);
  }

  async apply(
    changes: readonly ViewChange[],
    to: { readonly generation: number; readonly position: Position },
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    return (await this.#files.find(to.generation)?.apply(changes, to.position)) ?? 'reset';
  }

  async parked({ after = 0, limit = MAX_PARKED_READ }: ParkedPage = {}): Promise<ParkedTransactionEvent[]> {
    return this.#files.served().rows.parked(after, limit);
  }

  async countParked(): Promise<number> {
    return this.#files.served().rows.countParked();
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#write(({ rows }) => rows.retry(changes));
  }

  async erase(transactionId: number): Promise<void> {
    // A build that begins after the first look reads a log without the transaction.
    for (const file of this.#files.all()) await file.write(() => file.rows.erase(transactionId));
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    await this.#write(({ rows }) => rows.replace(transactionId, changes));
  }

  async close(): Promise<void> {
    this.#files.close();
  }

  /** Writes to the served file; again where another one is served by then. */
  async #write(work: (served: SqliteGeneration) => void): Promise<void> {
    for (;;) {
      const served = this.#files.served();
      await served.write(() => work(served));
      if (!served.isRetired()) return;
    }
  }
}

class SqliteViewBuild implements ViewBuild {
  readonly #files: GenerationFiles;

  constructor(files: GenerationFiles) {
    this.#files = files;
  }

  async checkpoint(): Promise<BuildCheckpoint | undefined> {
    return this.#files.build()?.read();
  }

  /** Within the write lock of the served file, so that of several processes one begins. */
  async start(storeId: string, servesFrom: Position): Promise<BuildCheckpoint> {
    for (;;) {
      const served = this.#files.served();
      const build = await served.write(() => {
        if (served.isRetired()) return undefined;
        const present = this.#files.build();
        const { storeId: builtFrom, rendering } = present?.read() ?? {};
        if (present !== undefined && builtFrom === storeId && rendering === RENDERING_VERSION) return present;
        present?.drop();
        const generation = served.nextNumber();
        const begun = this.#files.create(generation);
        begun.beginBuild({ storeId, servesFrom, generation });
        return begun;
      });
      if (build !== undefined) return build.resume();
    }
  }

  rows(generation: number): ViewRows {
    const file = this.#files.find(generation);
    if (file === undefined) throw new FuelError('REFUSED', 'another view is served, or being built, by now');
    return file;
  }

  async serve(generation: number): Promise<boolean> {
    const file = this.#files.find(generation);
    const served = this.#files.served();
    if (file === undefined || file === served) return file !== undefined;
    const checkpoint = file.read();
    if (checkpoint === undefined || !isComplete(checkpoint)) return false;
    const isServed = await served.retire(checkpoint.position);
    if (isServed) this.#files.served(); // removes the other
    return isServed;
  }
}
