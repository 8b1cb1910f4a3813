import type { RowState, TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { MAX_PARKED_READ } from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import {
  type BuildCheckpoint,
  type BuildPlace,
  type Checkpoint,
  canContinue,
  isComplete,
  notInUse,
  type ParkedTransactionEvent,
} from '../../../pull/view/checkpoint.ts';
import type {
  AppliedTo,
  PageQuery,
  ParkedPage,
  TransactionsView,
  ViewPage,
} from '../../../pull/view/transactions-view.ts';
import { erasure } from '../../stored/fold-changes.ts';
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
  readonly #files: GenerationFiles;

  constructor(path: string, clock: Clock) {
    this.#files = new GenerationFiles(path, clock);
    this.#files.served(); // creates the file, or refuses a newer one
  }

  async page(query: PageQuery): Promise<ViewPage> {
    return this.#files.served().page(query);
  }

  async find(transactionIds: readonly number[], generation?: number): Promise<ReadonlyMap<number, RowState>> {
    return this.#file(generation).find(transactionIds);
  }

  async rowsAfter(afterId: number, limit: number, generation?: number): Promise<TransactionRow[]> {
    return this.#file(generation).rowsAfter(afterId, limit);
  }

  async idsAfter(afterId: number, limit: number): Promise<number[]> {
    return this.#files.served().idsAfter(afterId, limit);
  }

  async parked({ after = 0, limit = MAX_PARKED_READ }: ParkedPage = {}): Promise<ParkedTransactionEvent[]> {
    return this.#files.served().parked(after, limit);
  }

  async countParked(): Promise<number> {
    return this.#files.served().countParked();
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return this.#files.served().checkpoint();
  }

  async building(): Promise<BuildCheckpoint | undefined> {
    return this.#files.build()?.checkpoint();
  }

  async apply(
    changes: readonly ViewChange[],
    to: AppliedTo,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    return (await this.#files.find(to.generation)?.apply(changes, to)) ?? 'reset';
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#toServed((served) => served.retry(changes));
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    // A build that begins after this look reads a log in which that is so already; one that is served meanwhile has it too.
    await this.#files.build()?.replace(transactionId, changes);
    await this.#toServed((served) => served.replace(transactionId, changes));
  }

  async erase(transactionId: number): Promise<void> {
    await this.replace(transactionId, [erasure(transactionId)]);
  }

  async reset(storeId: string, servesFrom: Position): Promise<Checkpoint> {
    return this.#files.served().reset(storeId, servesFrom);
  }

  /** Within the write lock of the served file, so that of several processes one begins. */
  async startBuild(place: BuildPlace): Promise<BuildCheckpoint> {
    for (;;) {
      const served = this.#files.served();
      const build = await served.whileLocked(() => {
        if (served.isRetired()) return undefined;
        const present = this.#files.build();
        if (present !== undefined && canContinue(present.checkpoint(), place)) return present;
        present?.drop();
        const generation = served.nextNumber();
        const begun = this.#files.create(generation);
        begun.beginBuild({ ...place, generation });
        return begun;
      });
      if (build !== undefined) return build.resume();
    }
  }

  async serveBuild(generation: number): Promise<boolean> {
    const file = this.#files.find(generation);
    const served = this.#files.served();
    if (file === undefined || file === served) return file !== undefined;
    const checkpoint = file.checkpoint();
    if (checkpoint === undefined || !isComplete(checkpoint)) return false;
    const isServed = await served.retire(checkpoint.position);
    if (isServed) this.#files.served(); // removes the other
    return isServed;
  }

  async close(): Promise<void> {
    this.#files.close();
  }

  #file(generation: number | undefined): SqliteGeneration {
    const file = generation === undefined ? this.#files.served() : this.#files.find(generation);
    if (file === undefined) throw notInUse();
    return file;
  }

  /** Writes to the served file; again where another one is served by then. */
  async #toServed(write: (served: SqliteGeneration) => Promise<void>): Promise<void> {
    for (;;) {
      const served = this.#files.served();
      await write(served);
      if (!served.isRetired()) return;
    }
  }
}
