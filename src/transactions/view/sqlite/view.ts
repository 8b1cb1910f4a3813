import { RENDERING_VERSION, type TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import { MAX_PARKED_READ, type Position } from '../../../event-store/event-store.ts';
import type { ViewChange } from '../../project-event.ts';
import type { StoredRow } from '../bulk-reads.ts';
import { type Checkpoint, isComplete, type ParkedTransactionEvent } from '../checkpoint.ts';
import { boundsUpTo } from '../segments.ts';
import type { PageQuery, ParkedPage, TransactionsView, ViewPage } from '../transactions-view.ts';
import type { ViewBuild, ViewBuilds } from '../view-builds.ts';
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
  readonly builds: ViewBuilds;
  readonly #files: GenerationFiles;

  constructor(path: string, clock: Clock) {
    this.#files = new GenerationFiles(path, clock);
    this.builds = new SqliteViewBuilds(this.#files);
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
    return this.#files.served().applyTo(to.generation, changes, to.position);
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

  async noteBound(position: Position): Promise<void> {
    await this.#files.served().noteBound(position);
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

class SqliteViewBuilds implements ViewBuilds {
  readonly #files: GenerationFiles;

  constructor(files: GenerationFiles) {
    this.#files = files;
  }

  async current(): Promise<SqliteGeneration | undefined> {
    return this.#files.build();
  }

  /** Within the write lock of the served file, so that of several processes one begins. */
  async start(storeId: string, servesFrom: Position): Promise<ViewBuild> {
    for (;;) {
      const build = await this.#files.served().startBuild((served, generation) => {
        const present = this.#files.build();
        const { storeId: builtFrom, rendering } = present?.read() ?? {};
        if (present !== undefined && builtFrom === storeId && rendering === RENDERING_VERSION) return present;
        present?.drop();
        const begun = this.#files.create(generation);
        const known = served.read()?.storeId === storeId ? served.allSegments() : [];
        begun.beginBuild({ storeId, servesFrom, generation, bounds: boundsUpTo(known, servesFrom) });
        return begun;
      });
      if (build !== undefined) return build;
    }
  }

  async switchTo({ generation }: ViewBuild): Promise<boolean> {
    const build = this.#files.build();
    const checkpoint = build?.read();
    if (checkpoint?.generation !== generation) return this.#files.served().read()?.generation === generation;
    if (!isComplete(checkpoint)) return false;
    const isSwitched = await this.#files.served().retire(checkpoint.position);
    if (isSwitched) this.#files.served(); // removes the other
    return isSwitched;
  }

  async drop({ generation }: ViewBuild): Promise<void> {
    const build = this.#files.build();
    if (build?.read()?.generation !== generation) return;
    build.drop();
    this.#files.all(); // removes it
  }
}
