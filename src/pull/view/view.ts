import type { RowState, TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
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
  notServable,
  type ParkedTransactionEvent,
} from './checkpoint.ts';
import {
  allIn,
  type Generation,
  Generations,
  type InUse,
  type Left,
  type LookOptions,
  type Made,
  madeIn,
  namedIn,
} from './generations.ts';
import { findPage, PAGE_CALL_MS } from './page.ts';
import { type Applied, changeProgress, readProgress } from './progress.ts';
import { type Row, stateIn } from './stores.ts';
import type { AppliedTo, PageQuery, ParkedPage, TransactionsView, ViewPage } from './transactions-view.ts';

/** The number of times that work is done on a generation which has left by its end. */
const MAX_TRIES = 3;
/** A page, or a batch, begins with the generations of a look that is at most this old. */
const LOOK_EVERY_MS = 1_000;
/**
 * The maximum age of the newest look when the work on a generation ends. If it is older, the work needs another look.
 * It is far shorter than `REMOVED_AFTER_MS`, so that nobody uses a generation that is being removed.
 */
const MAX_LOOK_AGE_MS = 2_000;
const OF_PAGE: LookOptions = { maxAgeMs: LOOK_EVERY_MS, withinMs: PAGE_CALL_MS };
type Choice<T> = (use: InUse) => T | undefined;

/** The transactions view in the tables of an engine. `open` is called for each generation when it is first used. */
export function openTransactionsView(open: OpenTables, clock: Clock): TransactionsView {
  return new TablesView(open, clock);
}

class TablesView implements TransactionsView {
  readonly #clock: Clock;
  readonly #generations: Generations;
  /** The generation that was last found to be complete. */
  #complete: Generation | undefined;
  /** The generation that changes were last applied to. */
  #applied: Applied | undefined;

  constructor(open: OpenTables, clock: Clock) {
    this.#clock = clock;
    this.#generations = new Generations(open);
  }

  async page(query: PageQuery): Promise<ViewPage> {
    const read = async (from: Generation, made: Made): Promise<ViewPage> => {
      if (this.#complete !== from) {
        const { checkpoint, stored } = await readProgress(from, made, PAGE_CALL_MS);
        assertServable(stored && checkpoint);
        this.#complete = from;
      }
      const page = await findPage(from, query);
      // Tables that are gone read as empty, and a machine that was suspended does not notice how old its look is.
      if (page.rows.length === 0) await this.#generations.inUse({ withinMs: PAGE_CALL_MS });
      return page;
    };
    const page = await this.#in(served, read, OF_PAGE);
    if (page === undefined) throw notServable();
    return page;
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
    const numbered: Choice<Made> = (use) => madeIn(use, generation);
    const known = this.#applied?.made.generation === generation ? this.#applied : undefined;
    const isMoved = known === undefined || known.progress.checkpoint.position < position;
    const apply = async (to: Generation, made: Made): Promise<readonly ParkedTransactionEvent[]> => {
      const before = known?.to === to ? known.progress : await readProgress(to, made);
      const parked = await applyChanges(to, changes, this.#clock.now());
      const move = ({ since, ...former }: Checkpoint): Checkpoint => ({
        ...former,
        position: Math.max(former.position, position),
        anchor: newerAnchor(former.anchor, anchor),
        since: { ...since, events: since.events + changes.length },
      });
      const isServable = before.stored !== undefined && isComplete(before.checkpoint);
      if (!isServable && isComplete(move(before.checkpoint))) await to.tables.makeIndexes(to.rows);
      const moving = changeProgress(to, made, move, before);
      const [progress] = await Promise.all([moving, this.#generations.inUse()]); // a switch counts at once
      this.#applied = { to, made, progress };
      return parked;
    };
    const applied =
      isMoved || changes.length > 0
        ? await this.#in(numbered, apply, { maxAgeMs: LOOK_EVERY_MS })
        : numbered(await this.#generations.inUse()) && []; // so it is each second while nothing happens
    if (applied === undefined) this.#applied = undefined;
    await this.#generations.removeLeft();
    return applied ?? 'reset';
  }

  /**
   * Replaces in each generation that somebody may still read, one that may be served later before others, so that no
   * process which has stopped showing the former row shows it again. A build that begins meanwhile reads the log as it is now.
   */
  async replace(id: number, changes: readonly ViewChange[]): Promise<void> {
    const atMs = this.#clock.now();
    const done = new Set<number>();
    for (;;) {
      const left = allIn(await this.#generations.inUse()).find((each) => !done.has(each.generation));
      if (left === undefined) return;
      const { generation } = left;
      await this.#in(
        (use) => namedIn(use, generation),
        (to) => replaceRow(to, { id, changes, atMs }),
        { maxAgeMs: LOOK_EVERY_MS },
      );
      done.add(generation);
    }
  }

  async leaving(): Promise<readonly number[]> {
    return (await this.#generations.inUse()).leaving.map(({ generation }) => generation);
  }

  async reset(storeId: string, servesFrom: number): Promise<Checkpoint> {
    const made = await this.#generations.serveNew({ storeId, servesFrom });
    return this.#begin(made);
  }

  async startBuild(place: BuildPlace): Promise<Checkpoint> {
    const { built } = await this.#generations.inUse();
    const left = await this.#checkpointOf((use) => built && madeIn(use, built.generation));
    const isContinued = built !== undefined && canContinue(left, place);
    const made = isContinued ? built : await this.#generations.buildNew(place, built);
    return this.#begin(made);
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
    return this.#generations.serveBuilt(use.built, use.served);
  }

  async close(): Promise<void> {
    await this.#generations.close();
  }

  #checkpointOf(pick: Choice<Made>): Promise<Checkpoint | undefined> {
    return this.#in(pick, async (from, made) => (await readProgress(from, made)).checkpoint);
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
   * `undefined` if there is none. The work counts if the newest look at its end is young and finds the same generation,
   * which nobody can have removed since then.
   */
  async #in<M extends Left, T>(
    pick: Choice<M>,
    work: (generation: Generation, made: M) => Promise<T>,
    look: LookOptions = {},
  ): Promise<T | undefined> {
    const { withinMs } = look;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const made =
        pick(await this.#generations.inUse(look)) ?? pick(await this.#generations.inUse({ withinMs }));
      if (made === undefined) return undefined;
      const [result] = await Promise.allSettled([work(this.#generations.store(made), made)]);
      const use = await this.#generations.inUse({ maxAgeMs: MAX_LOOK_AGE_MS, withinMs });
      if (pick(use)?.generation === made.generation) {
        if (result.status === 'rejected') throw result.reason;
        return result.value;
      }
      if (namedIn(use, made.generation) === undefined) await this.#generations.leaveAgain(made);
    }
    throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is replaced again and again');
  }
}

const served: Choice<Made> = (use) => use.served;

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
