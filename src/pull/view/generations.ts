import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { FuelError, isUnavailable } from '../../base/errors.ts';
import type { RowOf } from '../../tables/plan.ts';
import { drop, type OpenTables, put, type Tables } from '../../tables/tables.ts';
import type { BuildPlace, Checkpoint } from './checkpoint.ts';
import {
  type GenerationTables,
  generationStore,
  generationTables,
  type Patience,
  VIEWS,
  viewsStore,
} from './stores.ts';

const NAME = 'transactions';
/** The number of stores without an entry that may be passed over in search of a free number. */
const MAX_PASSED = 1_000;

/** The part of a generation that is fixed when it is made. */
export type Made = Pick<Checkpoint, 'generation' | 'storeId' | 'servesFrom' | 'rendering'>;

/** The generations that there are. */
export interface InUse {
  /** The highest number that was ever given: none is given twice, since a late writer may still have it open. */
  readonly last: number;
  readonly served: Made | undefined;
  readonly built: Made | undefined;
  /** Generations that are no longer served or built, and are to be removed. */
  readonly leaving: readonly number[];
}

/** The store of one generation, open. */
export interface Generation extends GenerationTables {
  readonly number: number;
  readonly tables: Tables;
}

const NONE: InUse = { last: 0, served: undefined, built: undefined, leaving: [] };

/**
 * The generations of the view, each with its own store: the one that is served, and possibly one that is being built. One
 * row names them, and a switch is a single guarded write of that row. A generation that is no longer named is removed
 * afterwards, by this process or by the next one that changes anything.
 */
export class Generations {
  readonly #open: OpenTables;
  readonly #patience: Patience;
  readonly #views: Tables;
  readonly #opened = new Map<number, Generation>();

  constructor(open: OpenTables, patience: Patience) {
    this.#open = open;
    this.#patience = patience;
    this.#views = open(viewsStore(patience));
  }

  async inUse(): Promise<InUse> {
    return inUseIn(await this.#read());
  }

  /**
   * Opens the store of a generation that was in use; returns `undefined` if it is no longer. Opening makes missing tables,
   * so the row is read once more afterwards.
   */
  async store({ generation: number, rendering }: Made): Promise<Generation | undefined> {
    const known = this.#opened.get(number);
    if (known !== undefined) return known;
    const opened = this.#openStore(number, rendering);
    if (!(await this.isStillInUse(number))) return undefined;
    await this.closeLeft();
    return opened;
  }

  /**
   * Says whether a generation is served or being built. If it is not, it is to be removed once more, with anything that was
   * written to it meanwhile, since a server makes missing tables again.
   */
  async isStillInUse(number: number): Promise<boolean> {
    for (;;) {
      const row = await this.#read();
      const use = inUseIn(row);
      if (madeIn(use, number) !== undefined) return true;
      if (number > use.last) return false;
      const leaving = [...new Set([...use.leaving, number])];
      if (leaving.length === use.leaving.length || (await this.#write({ ...use, leaving }, row))) break;
    }
    await this.removeLeaving();
    return false;
  }

  /** Serves a new, empty generation instead of the present one. */
  async serveNew(place: Pick<Made, 'storeId' | 'servesFrom'>): Promise<Made> {
    return this.#make(place, (made, { served, leaving, ...rest }) => ({
      ...rest,
      served: made,
      leaving: served === undefined ? leaving : [...leaving, served.generation],
    }));
  }

  /** Makes a new, empty generation the one that is built, unless the one being built is no longer `former`. */
  async buildNew(place: Pick<BuildPlace, 'storeId' | 'servesFrom'>, former: Made | undefined): Promise<Made> {
    return this.#make(place, (made, { built, leaving, ...rest }) => {
      if (built?.generation !== former?.generation) return built;
      const left = former === undefined ? leaving : [...leaving, former.generation];
      return { ...rest, built: made, leaving: left };
    });
  }

  /** Serves the built generation instead of the present one. Returns false if either is another one by now. */
  async serveBuilt(built: Made, served: Made): Promise<boolean> {
    const row = await this.#read();
    const use = inUseIn(row);
    if (use.built?.generation !== built.generation || use.served?.generation !== served.generation)
      return false;
    const leaving = [...use.leaving, served.generation];
    return this.#write({ ...use, served: built, built: undefined, leaving }, row);
  }

  /**
   * Removes the generations that are no longer in use. Returns those that could not be removed now, such as while a backup
   * reads them. A later call removes them.
   */
  async removeLeaving(): Promise<readonly number[]> {
    for (;;) {
      const row = await this.#read();
      const use = inUseIn(row);
      const left: number[] = [];
      for (const number of use.leaving) if (!(await this.#isRemoved(number))) left.push(number);
      if (left.length === use.leaving.length) return left;
      if (await this.#write({ ...use, leaving: left }, row)) return left;
    }
  }

  /** Removes the row of a transaction from a generation that is no longer in use. */
  async removeRow(number: number, id: number): Promise<void> {
    const { tables, rows } = this.#openStore(number, RENDERING_VERSION);
    await tables.write([drop(rows, id)]);
  }

  async close(): Promise<void> {
    for (const { tables } of this.#opened.values()) await tables.close();
    this.#opened.clear();
    await this.#views.close();
  }

  #openStore(number: number, rendering: number): Generation {
    const known = this.#opened.get(number);
    if (known !== undefined) return known;
    const tables = generationTables(number, rendering);
    const opened = { number, tables: this.#open(generationStore(number, tables, this.#patience)), ...tables };
    this.#opened.set(number, opened);
    return opened;
  }

  /** Closes the stores of generations that are no longer in use: a removed file takes its space while it is open. */
  async closeLeft(): Promise<void> {
    const use = await this.inUse();
    for (const [number, { tables }] of this.#opened) {
      if (number > use.last || madeIn(use, number) !== undefined) continue;
      this.#opened.delete(number);
      await tables.close();
    }
  }

  /**
   * Removes a generation of any rendering, since the names of its tables do not depend on it. Returns false if its store
   * does not allow that now: the view that is served does not depend on it.
   */
  async #isRemoved(number: number): Promise<boolean> {
    const { tables } = this.#openStore(number, RENDERING_VERSION);
    this.#opened.delete(number);
    try {
      await tables.destroy();
      return true;
    } catch (error) {
      if (isUnavailable(error)) return false;
      throw error;
    }
  }

  /** `change` returns the generations in use with the new one, or the generation to take instead of a new one. */
  async #make(
    { storeId, servesFrom }: Pick<Made, 'storeId' | 'servesFrom'>,
    change: (made: Made, before: InUse) => InUse | Made | undefined,
  ): Promise<Made> {
    for (let passed = 0; passed <= MAX_PASSED; ) {
      const row = await this.#read();
      const before = inUseIn(row);
      const made: Made = { generation: before.last + 1, storeId, servesFrom, rendering: RENDERING_VERSION };
      const after = change(made, before);
      if (after === undefined)
        throw new FuelError('STORE_UNAVAILABLE', 'the build of the view was dropped while it began');
      if (!('leaving' in after)) return after;
      const last = made.generation;
      if (await this.#isEmpty(last)) {
        if (await this.#write({ ...after, last }, row)) return made;
      } else {
        passed += 1;
        await this.#write({ ...before, last, leaving: [...before.leaving, last] }, row);
      }
    }
    throw new Error(`${MAX_PASSED} generations of the view hold rows, and nothing names them: remove them`);
  }

  /** A store may have rows though nothing names it: a damaged `transactions.db` is moved away, and what it named stays. */
  async #isEmpty(number: number): Promise<boolean> {
    const { tables, rows, progress } = this.#openStore(number, RENDERING_VERSION);
    const first = { index: 'key', limit: 1 } as const;
    const [row, place] = await Promise.all([tables.find(rows, first), tables.find(progress, first)]);
    return row.length === 0 && place.length === 0;
  }

  async #read(): Promise<RowOf<typeof VIEWS> | undefined> {
    const [row] = await this.#views.get(VIEWS, [NAME]);
    return row;
  }

  /** Returns false if the row has changed since it was read. */
  async #write(use: InUse, before: RowOf<typeof VIEWS> | undefined): Promise<boolean> {
    const row = {
      name: NAME,
      last: use.last,
      served: use.served === undefined ? null : JSON.stringify(use.served),
      built: use.built === undefined ? null : JSON.stringify(use.built),
      leaving: JSON.stringify(use.leaving),
    };
    const [isDone = false] = await this.#views.write([
      put(VIEWS, row, before === undefined ? 'missing' : { as: before }),
    ]);
    return isDone;
  }
}

function inUseIn(row: RowOf<typeof VIEWS> | undefined): InUse {
  if (row === undefined) return NONE;
  const made = (text: string | null): Made | undefined =>
    text === null ? undefined : (JSON.parse(text) as Made);
  return {
    last: row.last,
    served: made(row.served),
    built: made(row.built),
    leaving: JSON.parse(row.leaving) as number[],
  };
}

export function madeIn({ served, built }: InUse, generation: number): Made | undefined {
  return [served, built].find((made) => made?.generation === generation);
}
