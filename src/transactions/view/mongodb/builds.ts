import type { Db } from 'mongodb';
import { RENDERING_VERSION, type TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import { FuelError } from '../../../errors.ts';
import type { Position } from '../../../event-store/event-store.ts';
import type { PreparedCollections } from '../../../mongodb/prepared-collections.ts';
import type { ViewChange } from '../../project-event.ts';
import { type Checkpoint, isComplete, type ParkedTransactionEvent } from '../checkpoint.ts';
import { boundsUpTo, plannedUpTo } from '../segments.ts';
import type { Bounds, Resumed, Segment, ViewBuild, ViewBuilds } from '../view-builds.ts';
import { rowsAfter } from './bulk-reads.ts';
import { applyChanges } from './changes.ts';
import { rowOf } from './documents.ts';
import {
  BUILD,
  beginBuild,
  dropBuild,
  generationOf,
  makeIndexes,
  moveCheckpoint,
  readCheckpoint,
  readResumed,
  serveBuild,
  writeResumed,
} from './generations.ts';
import { moveSegment, noteBound, planSegments, readSegments } from './segments.ts';

const READ_MS = 5_000;
const WRITE_MS = 30_000;
/** A retry after it waits for the same index build. */
const INDEXES_MS = 3_600_000;

export class MongoViewBuilds implements ViewBuilds {
  readonly #collections: PreparedCollections;
  readonly #clock: Clock;

  constructor(collections: PreparedCollections, clock: Clock) {
    this.#collections = collections;
    this.#clock = clock;
  }

  async current(): Promise<ViewBuild | undefined> {
    return this.#collections.use(READ_MS, async (db) => {
      const [served, build] = await Promise.all([readCheckpoint(db), readCheckpoint(db, BUILD)]);
      if (build === undefined) return undefined;
      // It is served already, by a process that was killed right after the switch.
      if (build.generation === served?.generation) return undefined;
      return this.#buildOf(build.generation);
    });
  }

  async start(storeId: string, servesFrom: Position): Promise<ViewBuild> {
    return this.#collections.use(WRITE_MS, async (db) => {
      const [served, present] = await Promise.all([readCheckpoint(db), readCheckpoint(db, BUILD)]);
      if (present !== undefined) {
        const fits = present.storeId === storeId && present.rendering === RENDERING_VERSION;
        if (fits && present.generation !== served?.generation) return this.#buildOf(present.generation);
        await dropBuild(db, present.generation);
      }
      const { generation } = await beginBuild(db, { storeId, servesFrom });
      if (served?.storeId === storeId) {
        const known = await readSegments(db, served.generation);
        await planSegments(db, generation, boundsUpTo(known, servesFrom));
      }
      return this.#buildOf(generation);
    });
  }

  async switchTo({ generation }: ViewBuild): Promise<boolean> {
    return this.#collections.use(WRITE_MS, async (db) => {
      const build = await readCheckpoint(db, BUILD);
      if (build?.generation !== generation) return (await readCheckpoint(db))?.generation === generation;
      return isComplete(build) && (await serveBuild(db, build));
    });
  }

  async drop({ generation }: ViewBuild): Promise<void> {
    await this.#collections.use(WRITE_MS, (db) => dropBuild(db, generation));
  }

  #buildOf(generation: number): ViewBuild {
    return new MongoViewBuild(this.#collections, { generation, clock: this.#clock });
  }
}

class MongoViewBuild implements ViewBuild {
  readonly generation: number;
  readonly #collections: PreparedCollections;
  readonly #clock: Clock;

  constructor(
    collections: PreparedCollections,
    { generation, clock }: { readonly generation: number; readonly clock: Clock },
  ) {
    this.generation = generation;
    this.#collections = collections;
    this.#clock = clock;
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return this.#collections.use(READ_MS, (db) => this.#read(db));
  }

  async segments(): Promise<Segment[]> {
    return this.#collections.use(READ_MS, (db) => readSegments(db, this.generation));
  }

  async plan(bounds: readonly Bounds[]): Promise<void> {
    await this.#write((db) => planSegments(db, this.generation, bounds));
  }

  async noteBound(position: Position): Promise<void> {
    await this.#write((db) => noteBound(db, this.generation, position));
  }

  async resumed(): Promise<Resumed | undefined> {
    return this.#collections.use(READ_MS, readResumed);
  }

  async resume(from: Resumed): Promise<void> {
    await this.#write((db) => writeResumed(db, this.generation, from));
  }

  async applySegment(
    changes: readonly ViewChange[],
    to: { readonly upTo: Position; readonly position: Position; readonly events: number },
  ): Promise<readonly ParkedTransactionEvent[]> {
    return this.#write(async (db) => {
      const parked = await this.#apply(db, changes);
      if (!(await moveSegment(db, this.generation, to))) {
        throw new Error(`generation ${this.generation} of the view has no segment up to ${to.upTo}`);
      }
      return parked;
    });
  }

  async finish(): Promise<void> {
    await this.#collections.use(INDEXES_MS, async (db) => {
      await this.#requireCurrent(db);
      await makeIndexes(generationOf(db, this.generation));
      const position = plannedUpTo(await readSegments(db, this.generation));
      await moveCheckpoint(db, { generation: this.generation, position }, BUILD);
    });
  }

  async apply(
    changes: readonly ViewChange[],
    position: Position,
  ): Promise<readonly ParkedTransactionEvent[]> {
    return this.#write(async (db) => {
      const parked = await this.#apply(db, changes);
      if (!(await moveCheckpoint(db, { generation: this.generation, position }, BUILD))) throw dropped();
      return parked;
    });
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    return this.#collections.use(READ_MS, async (db) => {
      const found = await generationOf(db, this.generation).rows.findOne({ _id: transactionId });
      return found === null ? undefined : (rowOf(found) ?? 'hidden');
    });
  }

  async rowsAfter(id: number, limit: number): Promise<TransactionRow[]> {
    return this.#collections.use(READ_MS, (db) => rowsAfter(generationOf(db, this.generation), id, limit));
  }

  #apply(db: Db, changes: readonly ViewChange[]): Promise<ParkedTransactionEvent[]> {
    return applyChanges(generationOf(db, this.generation), changes, this.#clock.now());
  }

  async #write<T>(work: (db: Db) => Promise<T>): Promise<T> {
    return this.#collections.use(WRITE_MS, async (db) => {
      await this.#requireCurrent(db);
      return work(db);
    });
  }

  async #requireCurrent(db: Db): Promise<void> {
    if ((await this.#read(db)) === undefined) throw dropped();
  }

  async #read(db: Db): Promise<Checkpoint | undefined> {
    const build = await readCheckpoint(db, BUILD);
    return build?.generation === this.generation ? build : undefined;
  }
}

function dropped(): FuelError {
  return new FuelError('REFUSED', 'the view that was being built was dropped, or is served by now');
}
