import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { FuelError } from '../../base/errors.ts';
import type { RowOf } from '../../tables/plan.ts';
import { type OpenTables, put, type Tables } from '../../tables/tables.ts';
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
/** Numbers that are passed over because a store that was left behind has them. */
const MAX_PASSED = 1_000;

/** What a generation is made with, and remains. */
export type Made = Pick<Checkpoint, 'generation' | 'storeId' | 'servesFrom' | 'rendering'>;

/** Which generations there are. */
export interface InUse {
  /** The highest number that was ever given: none is given twice, since a late writer may still have it open. */
  readonly last: number;
  readonly served: Made | undefined;
  readonly built: Made | undefined;
  /** Neither served nor built any more, and to be removed. */
  readonly leaving: readonly number[];
}

/** The store of one generation, open. */
export interface Generation extends GenerationTables {
  readonly number: number;
  readonly tables: Tables;
}

const NONE: InUse = { last: 0, served: undefined, built: undefined, leaving: [] };

/**
 * The generations of the view, each a store of its own: the one that is served, and one that may be built beside it. One row
 * says which they are, and a write of it as it was read is all of a switch. A generation that has left is removed
 * afterwards, by this process or the next one that changes anything.
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
   * The store of a generation that was in use, open; `undefined` where it has left. Opening one makes what is missing, so
   * that is looked at once more after it.
   */
  async store({ generation: number, rendering }: Made): Promise<Generation | undefined> {
    const known = this.#opened.get(number);
    if (known !== undefined) return known;
    const opened = this.#openStore(number, rendering);
    if (!(await this.isStillInUse(number))) return undefined;
    await this.#closeLeft(await this.inUse());
    return opened;
  }

  /** What has been written to a generation that has left meanwhile is removed: a server may have made its tables anew. */
  async isStillInUse(number: number): Promise<boolean> {
    const use = await this.inUse();
    if (madeIn(use, number) !== undefined) return true;
    if (number <= use.last) await this.#remove(number);
    return false;
  }

  /** Puts another generation, which is empty, in the place of the served one. */
  async serveNew(place: Pick<Made, 'storeId' | 'servesFrom'>): Promise<Made> {
    return this.#make(place, (made, { served, leaving, ...rest }) => ({
      ...rest,
      served: made,
      leaving: served === undefined ? leaving : [...leaving, served.generation],
    }));
  }

  /** Puts another generation, which is empty, in the place of the one that was built; unless that is another one by now. */
  async buildNew(place: Pick<BuildPlace, 'storeId' | 'servesFrom'>, former: Made | undefined): Promise<Made> {
    return this.#make(place, (made, { built, leaving, ...rest }) => {
      if (built?.generation !== former?.generation) return built;
      const left = former === undefined ? leaving : [...leaving, former.generation];
      return { ...rest, built: made, leaving: left };
    });
  }

  /** Puts the build in the place of the served one; false where they are others by now. */
  async serveBuilt(built: Made, served: Made): Promise<boolean> {
    const row = await this.#read();
    const use = inUseIn(row);
    if (use.built?.generation !== built.generation || use.served?.generation !== served.generation)
      return false;
    const leaving = [...use.leaving, served.generation];
    return this.#write({ ...use, served: built, built: undefined, leaving }, row);
  }

  /** Removes what has left. */
  async removeLeaving(): Promise<void> {
    for (;;) {
      const row = await this.#read();
      const use = inUseIn(row);
      if (use.leaving.length === 0) return;
      for (const number of use.leaving) await this.#remove(number);
      if (await this.#write({ ...use, leaving: [] }, row)) return;
    }
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

  /** A removed file would take its space for as long as it is open. */
  async #closeLeft(use: InUse): Promise<void> {
    for (const [number, { tables }] of this.#opened) {
      if (number > use.last || madeIn(use, number) !== undefined) continue;
      this.#opened.delete(number);
      await tables.close();
    }
  }

  /** Of whichever rendering: its tables have the same names. */
  async #remove(number: number): Promise<void> {
    const { tables } = this.#openStore(number, RENDERING_VERSION);
    this.#opened.delete(number);
    await tables.destroy();
  }

  /** `change` says what is in use with the new one, or which generation is taken instead. */
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

  /** It may have rows where the row that named it was removed. */
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

  /** False where it is not as it was read. */
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
