import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { steadyClock } from '../../base/clock.ts';
import { FuelError, isUnavailable } from '../../base/errors.ts';
import type { RowOf } from '../../tables/plan.ts';
import { type OpenTables, put, type Tables } from '../../tables/tables.ts';
import type { BuildPlace, Checkpoint } from './checkpoint.ts';
import { type GenerationTables, generationStore, generationTables, VIEWS, VIEWS_STORE } from './stores.ts';

const NAME = 'transactions';
/** The number of stores without an entry that may be passed over in search of a free number. */
const MAX_PASSED = 1_000;
/**
 * A former generation is removed this long after the process first saw that it had left, and tried again as long after
 * it could not be removed. It is longer than any process uses a generation after its last look, and longer than a former
 * primary of MongoDB answers.
 */
export const REMOVED_AFTER_MS = 30_000;

/** The part of a generation that is fixed when it is made. */
export type Made = Pick<Checkpoint, 'generation' | 'storeId' | 'servesFrom' | 'rendering'>;
/** A generation that is no longer served or built, and is to be removed. */
export type Left = Pick<Made, 'generation' | 'rendering'>;

/** The generations that there are. */
export interface InUse {
  /** The highest number that was ever given: none is given twice, since a late writer may still have it open. */
  readonly last: number;
  readonly served: Made | undefined;
  readonly built: Made | undefined;
  readonly leaving: readonly Left[];
}

/** The store of one generation, open. */
export interface Generation extends GenerationTables {
  readonly number: number;
  readonly tables: Tables;
}

export interface LookOptions {
  /** An earlier look counts if it is younger. By default there is always a new one. */
  readonly maxAgeMs?: number;
  readonly withinMs?: number | undefined;
}

/** One reading of the row. */
interface Look {
  /** When it began, by the steady clock. */
  readonly atMs: number;
  readonly withinMs: number | undefined;
  readonly reading: Promise<InUse>;
  /** The result of `reading`, once it is known. */
  found?: InUse;
}

const NONE: InUse = { last: 0, served: undefined, built: undefined, leaving: [] };

/**
 * The generations of the view, each with its own store: the one that is served, and possibly one that is being built. One
 * row names them, and a switch is a single guarded write of that row. A process looks at the row about once a second, and
 * until then it uses a generation that has left; so that one is removed only long after that.
 */
export class Generations {
  readonly #open: OpenTables;
  readonly #views: Tables;
  readonly #opened = new Map<number, Generation>();
  /** When this process first saw that a generation had left, or last tried to remove it. */
  readonly #leftAtMs = new Map<number, number>();
  #newest: Look | undefined;
  #isClosed = false;

  constructor(open: OpenTables) {
    this.#open = open;
    this.#views = open(VIEWS_STORE);
  }

  async inUse({ maxAgeMs = 0, withinMs }: LookOptions = {}): Promise<InUse> {
    const nowMs = steadyClock.now();
    const newest = this.#newest;
    if (newest !== undefined && nowMs - newest.atMs < maxAgeMs) {
      if (newest.found !== undefined) return newest.found;
      if (newest.withinMs === withinMs) return newest.reading;
    }
    const look: Look = { atMs: nowMs, withinMs, reading: this.#read(withinMs).then(inUseIn) };
    this.#newest = look;
    try {
      look.found = await look.reading;
    } catch (error) {
      if (this.#newest === look) this.#newest = undefined;
      throw error;
    }
    if (this.#newest === look) await this.#follow(look.found);
    return look.found;
  }

  /** Opens the store of a generation, which makes missing tables. */
  store({ generation: number, rendering }: Left): Generation {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', 'the transactions view was closed');
    const known = this.#opened.get(number);
    if (known !== undefined) return known;
    const tables = generationTables(number, rendering);
    const opened = { number, tables: this.#open(generationStore(number, tables)), ...tables };
    this.#opened.set(number, opened);
    return opened;
  }

  /** Serves a new, empty generation instead of the present one. */
  async serveNew(place: Pick<Made, 'storeId' | 'servesFrom'>): Promise<Made> {
    return this.#make(place, (made, { served, leaving, ...rest }) => ({
      ...rest,
      served: made,
      leaving: served === undefined ? leaving : [...leaving, leftOf(served)],
    }));
  }

  /** Makes a new, empty generation the one that is built, unless the one being built is no longer `former`. */
  async buildNew(place: Pick<BuildPlace, 'storeId' | 'servesFrom'>, former: Made | undefined): Promise<Made> {
    return this.#make(place, (made, { built, leaving, ...rest }) => {
      if (built?.generation !== former?.generation) return built;
      const left = former === undefined ? leaving : [...leaving, leftOf(former)];
      return { ...rest, built: made, leaving: left };
    });
  }

  /** Serves the built generation instead of the present one. Returns false if either is another one by now. */
  async serveBuilt(built: Made, served: Made): Promise<boolean> {
    const row = await this.#read();
    const use = inUseIn(row);
    if (use.built?.generation !== built.generation || use.served?.generation !== served.generation)
      return false;
    const leaving = [...use.leaving, leftOf(served)];
    return this.#write({ ...use, served: built, built: undefined, leaving }, row);
  }

  /**
   * Sees to it that a generation which nothing names is removed once more, with anything that was written to it meanwhile,
   * since a server makes missing tables again.
   */
  async leaveAgain(left: Left): Promise<void> {
    for (;;) {
      const row = await this.#read();
      const use = inUseIn(row);
      if (left.generation > use.last || namedIn(use, left.generation) !== undefined) return;
      if (await this.#write({ ...use, leaving: [...use.leaving, leftOf(left)] }, row)) return;
    }
  }

  /** Removes the generations that left long ago. */
  async removeLeft(): Promise<void> {
    const nowMs = steadyClock.now();
    for (const [number, atMs] of this.#leftAtMs)
      if (nowMs - atMs >= REMOVED_AFTER_MS) await this.remove(number);
  }

  /**
   * Removes a generation of any rendering, since the names of its tables do not depend on it. If its store does not allow
   * that now, such as while a backup reads it, a later call removes it: the view that is served does not depend on it.
   */
  async remove(number: number): Promise<void> {
    this.#leftAtMs.set(number, steadyClock.now());
    const { tables } = this.store({ generation: number, rendering: RENDERING_VERSION });
    this.#opened.delete(number);
    try {
      await tables.destroy();
    } catch (error) {
      if (isUnavailable(error)) return;
      throw error;
    }
    for (;;) {
      const row = await this.#read();
      const use = inUseIn(row);
      const leaving = use.leaving.filter(({ generation }) => generation !== number);
      if (leaving.length === use.leaving.length || (await this.#write({ ...use, leaving }, row))) return;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#newest = undefined;
    for (const { tables } of this.#opened.values()) await tables.close();
    this.#opened.clear();
    await this.#views.close();
  }

  /** Notes when generations have left, and closes removed ones: a removed file takes its space while it is open. */
  async #follow(use: InUse): Promise<void> {
    const nowMs = steadyClock.now();
    const leaving = new Set(use.leaving.map(({ generation }) => generation));
    for (const number of this.#leftAtMs.keys()) if (!leaving.has(number)) this.#leftAtMs.delete(number);
    for (const number of leaving) if (!this.#leftAtMs.has(number)) this.#leftAtMs.set(number, nowMs);
    for (const [number, { tables }] of this.#opened) {
      if (number > use.last || namedIn(use, number) !== undefined) continue;
      this.#opened.delete(number);
      await tables.close();
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
      if (await this.#isEmpty(made)) {
        if (await this.#write({ ...after, last }, row)) return made;
      } else {
        passed += 1;
        const left = { generation: last, rendering: 0 }; // any rendering has the columns of the first one
        await this.#write({ ...before, last, leaving: [...before.leaving, left] }, row);
      }
    }
    throw new Error(`${MAX_PASSED} generations of the view hold rows, and nothing names them: remove them`);
  }

  /** A store may have rows though nothing names it: a damaged `transactions.db` is moved away, and what it named stays. */
  async #isEmpty(made: Made): Promise<boolean> {
    const plan = generationTables(made.generation, made.rendering);
    const tables = this.#open(generationStore(made.generation, plan));
    const first = { index: 'key', limit: 1 } as const;
    try {
      const found = [await tables.find(plan.rows, first), await tables.find(plan.progress, first)];
      return found.flat().length === 0;
    } finally {
      await tables.close();
    }
  }

  async #read(withinMs?: number): Promise<RowOf<typeof VIEWS> | undefined> {
    const [row] = await this.#views.find(VIEWS, { index: 'key', equals: { name: NAME }, limit: 1, withinMs });
    return row;
  }

  /** Returns false if the row has changed since it was read. Looks that began before do not count afterwards. */
  async #write(use: InUse, before: RowOf<typeof VIEWS> | undefined): Promise<boolean> {
    const row = {
      name: NAME,
      last: use.last,
      served: use.served === undefined ? null : JSON.stringify(use.served),
      built: use.built === undefined ? null : JSON.stringify(use.built),
      leaving: JSON.stringify(use.leaving),
    };
    try {
      const [isDone = false] = await this.#views.write([
        put(VIEWS, row, before === undefined ? 'missing' : { as: before }),
      ]);
      return isDone;
    } finally {
      this.#newest = undefined;
    }
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
    leaving: JSON.parse(row.leaving) as Left[],
  };
}

function leftOf({ generation, rendering }: Left): Left {
  return { generation, rendering };
}

export function madeIn({ served, built }: InUse, generation: number): Made | undefined {
  return [served, built].find((made) => made?.generation === generation);
}

/** Returns all generations, those that may be served later first. */
export function allIn({ built, served, leaving }: InUse): Left[] {
  return [built, served, ...leaving].filter((each) => each !== undefined);
}

export function namedIn(use: InUse, generation: number): Left | undefined {
  return allIn(use).find((each) => each.generation === generation);
}
