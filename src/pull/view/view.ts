import type { RowState, TransactionRow } from '../../../projections/transactions.ts';
import { type Clock, steadyClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { MAX_PARKED_READ } from '../../event-store/event-store.ts';
import type { ViewChange } from '../../records/project-event.ts';
import type { OpenTables } from '../../tables/tables.ts';
import { applyChanges, replaceRow } from './apply-changes.ts';
import {
  assertServable,
  type BuildPlace,
  type Checkpoint,
  canContinue,
  isComplete,
  newerAnchor,
  notInUse,
  type ParkedTransactionEvent,
} from './checkpoint.ts';
import { type Generation, Generations, type InUse, type Made, madeIn } from './generations.ts';
import { findPage, lackedBy } from './page.ts';
import { type Applied, changeProgress, readProgress } from './progress.ts';
import { type Row, stateIn } from './stores.ts';
import type { AppliedTo, PageQuery, ParkedPage, TransactionsView, ViewPage } from './transactions-view.ts';

/** The number of times that a page is read again because the view was replaced meanwhile. */
const MAX_READS = 3;
/** How often a writer tries again to remove a generation that could not be removed. */
const REMOVES_EVERY_MS = 30_000;
/** A batch that comes this soon after the last one goes to the same generation, and looks afterwards whether it is in use. */
const LOOKS_EVERY_MS = 1_000;
type PickMade = (use: InUse) => Made | undefined;

/** The transactions view in the tables of an engine. `open` is called for each generation when it is first used. */
export function openTransactionsView(open: OpenTables, clock: Clock): TransactionsView {
  return new TablesView(open, clock);
}

class TablesView implements TransactionsView {
  readonly #clock: Clock;
  readonly #generations: Generations;
  readonly #pages: Generations;
  /** The generation that pages were last read from. */
  #paged: Generation | undefined;
  /** The generation that changes were last applied to. */
  #applied: Applied | undefined;
  #removesAtMs = 0;

  constructor(open: OpenTables, clock: Clock) {
    this.#clock = clock;
    this.#generations = new Generations(open, 'patient');
    this.#pages = new Generations(open, 'page');
  }

  /** A page counts only if its generation is still served after it was read, since it was then served all the time. */
  async page(query: PageQuery): Promise<ViewPage> {
    for (let reads = 0; reads < MAX_READS; reads++) {
      const known = this.#paged;
      const isUsable = known !== undefined && lackedBy(known, query) === undefined;
      const generation = isUsable ? known : await this.#servable(); // another may be served by now
      this.#paged = generation;
      const [page] = await Promise.allSettled([findPage(generation, query)]);
      if ((await this.#pages.inUse()).served?.generation === generation.number) {
        if (page.status === 'fulfilled') return page.value;
        throw page.reason;
      }
      this.#paged = undefined;
      await this.#pages.closeLeft();
    }
    throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is replaced again and again');
  }

  async find(transactionIds: readonly number[], generation?: number): Promise<ReadonlyMap<number, RowState>> {
    const rows = await this.#read(({ tables, rows }) => tables.get(rows, transactionIds), generation);
    return new Map(rows?.map((row) => [row.id, stateIn(row)]));
  }

  async rowsAfter(afterId: number, limit: number, generation?: number): Promise<TransactionRow[]> {
    const read = ({ tables, rows }: Generation) =>
      visibleAfter({ afterId, limit }, (range) => tables.find(rows, range));
    return ((await this.#read(read, generation)) ?? []).flatMap((row) => stateIn(row).shown ?? []);
  }

  async idsAfter(afterId: number, limit: number): Promise<number[]> {
    const columns = ['id', 'status'] as const;
    const rows = await this.#read(({ tables, rows }) =>
      visibleAfter({ afterId, limit }, (range) => tables.find(rows, { ...range, columns })),
    );
    return (rows ?? []).map(({ id }) => id);
  }

  async parked({ after, limit = MAX_PARKED_READ }: ParkedPage = {}): Promise<ParkedTransactionEvent[]> {
    const range = after === undefined ? {} : { after: { position: after } };
    const found = await this.#read(({ tables, parked }) =>
      tables.find(parked, { index: 'key', ...range, limit }),
    );
    return (found ?? []).map(({ parked_at: parkedAtMs, ...event }) => ({ ...event, parkedAtMs }));
  }

  async countParked(): Promise<number> {
    const count = await this.#read(({ tables, parked }) =>
      tables.count(parked, { index: 'key' }, Number.MAX_SAFE_INTEGER),
    );
    return count ?? 0;
  }

  checkpoint(of: 'served' | 'built' = 'served'): Promise<Checkpoint | undefined> {
    return this.#checkpointOf((use) => use[of]);
  }

  async apply(
    changes: readonly ViewChange[],
    { generation, position, anchor }: AppliedTo,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const numbered = (use: InUse) => madeIn(use, generation);
    await this.#removeLeaving();
    const known = this.#applied?.made.generation === generation ? this.#applied : undefined;
    if (known !== undefined && known.progress.checkpoint.position >= position && changes.length === 0) {
      // So it is each second while nothing happens: one read says that the generation is still in use.
      const atMs = steadyClock.now();
      const isInUse = numbered(await this.#generations.inUse()) !== undefined;
      this.#applied = isInUse ? { ...known, atMs } : undefined;
      return isInUse ? [] : 'reset';
    }
    const recent = known !== undefined && steadyClock.now() - known.atMs < LOOKS_EVERY_MS ? known : undefined;
    const applied = await this.#in(
      numbered,
      async (to, made) => {
        const before = recent?.to === to ? recent.progress : await readProgress(to, made);
        const parked = await applyChanges(to, changes, this.#clock.now());
        const move = ({ since, ...former }: Checkpoint): Checkpoint => ({
          ...former,
          position: Math.max(former.position, position),
          anchor: newerAnchor(former.anchor, anchor),
          since: { ...since, events: since.events + changes.length },
        });
        const isServable = before.stored !== undefined && isComplete(before.checkpoint);
        if (!isServable && isComplete(move(before.checkpoint))) await to.tables.makeIndexes(to.rows);
        const progress = await changeProgress(to, made, move, before);
        this.#applied = { to, made, progress, atMs: steadyClock.now() };
        return parked;
      },
      recent,
    );
    if (applied === undefined) this.#applied = undefined;
    return applied ?? 'reset';
  }

  /**
   * Replaces in the build first, before it may be served. A build that begins after the first look reads the log as it is
   * now. Generations that an interrupted switch has left are removed, since they must not keep the former row either.
   */
  async replace(id: number, changes: readonly ViewChange[]): Promise<void> {
    const atMs = this.#clock.now();
    const replace = (to: Generation): Promise<void> => replaceRow(to, { id, changes, atMs });
    const { built } = await this.#generations.inUse();
    if (built !== undefined) await this.#in((use) => madeIn(use, built.generation), replace);
    await this.#in(served, replace);
    for (const left of await this.#generations.removeLeaving()) await this.#generations.removeRow(left, id);
  }

  async leaving(): Promise<readonly number[]> {
    return (await this.#generations.inUse()).leaving;
  }

  async reset(storeId: string, servesFrom: number): Promise<Checkpoint> {
    const made = await this.#generations.serveNew({ storeId, servesFrom });
    const begun = await this.#begin(made);
    await this.#generations.removeLeaving();
    return begun;
  }

  async startBuild(place: BuildPlace): Promise<Checkpoint> {
    const { built } = await this.#generations.inUse();
    const left = await this.#checkpointOf((use) => built && madeIn(use, built.generation));
    const isContinued = built !== undefined && canContinue(left, place);
    const made = isContinued ? built : await this.#generations.buildNew(place, built);
    const begun = await this.#begin(made);
    await this.#generations.removeLeaving();
    return begun;
  }

  async serveBuild(generation: number): Promise<boolean> {
    const use = await this.#generations.inUse();
    if (use.served?.generation === generation) return true;
    if (use.served === undefined || use.built?.generation !== generation) return false;
    const [place, former] = await Promise.all([
      this.#checkpointOf((now) => madeIn(now, generation)),
      this.#checkpointOf(served),
    ]);
    if (place === undefined || !isComplete(place) || place.position < (former?.position ?? 0)) return false;
    const isServed = await this.#generations.serveBuilt(use.built, use.served);
    if (isServed) await this.#generations.removeLeaving();
    return isServed;
  }

  async close(): Promise<void> {
    await this.#pages.close();
    await this.#generations.close();
  }

  #checkpointOf(pick: PickMade): Promise<Checkpoint | undefined> {
    return this.#in(pick, async (from, made) => (await readProgress(from, made)).checkpoint);
  }

  /** Removes now and then what an earlier removal has left, since nothing else may ever change the generations. */
  async #removeLeaving(): Promise<void> {
    if (steadyClock.now() < this.#removesAtMs) return;
    this.#removesAtMs = steadyClock.now() + REMOVES_EVERY_MS;
    await this.#generations.removeLeaving();
  }

  /** Starts to count the applied events. A view that is complete while empty gets its indexes at once. */
  async #begin(made: Made): Promise<Checkpoint> {
    const atMs = this.#clock.now();
    const begun = await this.#in(
      (use) => madeIn(use, made.generation),
      async (generation) => {
        if (made.servesFrom === 0) await generation.tables.makeIndexes(generation.rows);
        const begin = (before: Checkpoint): Checkpoint => ({
          ...before,
          since: { atMs, position: before.position, events: 0 },
        });
        return (await changeProgress(generation, made, begin)).checkpoint;
      },
    );
    return begun ?? { ...made, position: 0, anchor: undefined, since: { atMs, position: 0, events: 0 } };
  }

  async #servable(): Promise<Generation> {
    for (;;) {
      const { served: made } = await this.#pages.inUse();
      if (made === undefined) assertServable(undefined);
      else {
        const generation = await this.#pages.store(made);
        if (generation === undefined) continue;
        const { checkpoint, stored } = await readProgress(generation, made);
        assertServable(stored && checkpoint);
        return generation;
      }
    }
  }

  /** Reads from this generation, or from the served one; returns `undefined` if none is served. */
  async #read<T>(read: (from: Generation) => Promise<T>, generation?: number): Promise<T | undefined> {
    const found = await this.#in(
      (use) => (generation === undefined ? use.served : madeIn(use, generation)),
      read,
    );
    if (found === undefined && generation !== undefined) throw notInUse();
    return found;
  }

  /**
   * Works on one of the generations in use, and again if that one was replaced before the work was done. Returns
   * `undefined` if there is none. It begins with the generation that is `known` to have been in use a moment ago, if given.
   */
  async #in<T>(
    pick: PickMade,
    work: (generation: Generation, made: Made) => Promise<T>,
    known?: Pick<Applied, 'to' | 'made'>,
  ): Promise<T | undefined> {
    for (let first = known; ; first = undefined) {
      const made = first?.made ?? pick(await this.#generations.inUse());
      if (made === undefined) return undefined;
      const generation = first?.to ?? (await this.#generations.store(made));
      if (generation === undefined) continue;
      const [result] = await Promise.allSettled([work(generation, made)]);
      if (!(await this.#generations.isStillInUse(made.generation))) continue;
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    }
  }
}

const served: PickMade = (use) => use.served;

/** Reads on past tombstones until there are as many visible rows as asked for. */
async function visibleAfter<T extends Pick<Row, 'id' | 'status'>>(
  { afterId, limit }: { readonly afterId: number; readonly limit: number },
  read: (range: { index: 'key'; after: { id: number }; limit: number }) => Promise<readonly T[]>,
): Promise<T[]> {
  const visible: T[] = [];
  for (let id = afterId; visible.length < limit; ) {
    const asked = limit - visible.length;
    const rows = await read({ index: 'key', after: { id }, limit: asked });
    for (const row of rows) if (row.status !== null) visible.push(row);
    if (rows.length < asked) break;
    id = rows.at(-1)?.id ?? id;
  }
  return visible;
}
