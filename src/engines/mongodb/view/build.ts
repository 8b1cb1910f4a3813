import type { Clock } from '../../../base/clock.ts';
import type { Position } from '../../../event-store/event-store.ts';
import type { ViewRows } from '../../../pull/view/bulk-reads.ts';
import { type BuildCheckpoint, isComplete } from '../../../pull/view/checkpoint.ts';
import type { ViewBuild } from '../../../pull/view/view-build.ts';
import type { PreparedCollections } from '../driver/prepared-collections.ts';
import { findRow, rowsAfter } from './bulk-reads.ts';
import {
  type Generation,
  generationOf,
  makeIndexes,
  readBuild,
  readCheckpoint,
  serveBuild,
  startBuild,
} from './generations.ts';

const READ_MS = 5_000;
const WRITE_MS = 30_000;

export class MongoViewBuild implements ViewBuild {
  readonly #collections: PreparedCollections;
  readonly #clock: Clock;

  constructor(collections: PreparedCollections, clock: Clock) {
    this.#collections = collections;
    this.#clock = clock;
  }

  async checkpoint(): Promise<BuildCheckpoint | undefined> {
    return this.#collections.use(READ_MS, readBuild);
  }

  async start(storeId: string, servesFrom: Position): Promise<BuildCheckpoint> {
    const atMs = this.#clock.now();
    return this.#collections.use(WRITE_MS, async (db) => {
      const build = await startBuild(db, { storeId, servesFrom, atMs });
      if (servesFrom === 0) await makeIndexes(generationOf(db, build.generation));
      return build;
    });
  }

  rows(generation: number): ViewRows {
    const read = <T>(work: (rows: Generation) => Promise<T>): Promise<T> =>
      this.#collections.use(READ_MS, (db) => work(generationOf(db, generation)));
    return {
      find: (transactionId) => read((rows) => findRow(rows, transactionId)),
      rowsAfter: (afterId, limit) => read((rows) => rowsAfter(rows, afterId, limit)),
    };
  }

  async serve(generation: number): Promise<boolean> {
    return this.#collections.use(WRITE_MS, async (db) => {
      const build = await readBuild(db);
      if (build?.generation !== generation) return (await readCheckpoint(db))?.generation === generation;
      return isComplete(build) && (await serveBuild(db, build));
    });
  }
}
