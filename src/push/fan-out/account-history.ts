import { LRUCache } from 'lru-cache';
import { type ReadAccountEvent, readAccountEvent } from '../../accounts/read-account-event.ts';
import { type ReachedRows, type RowReads, readReached } from '../../accounts/rows/read-rows.ts';
import { steadyClock } from '../../base/clock.ts';
import type { Account } from '../../domain/account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { type AccountDraft, nextDraft } from '../../domain/account-evolve.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';

/** The most events that are kept in memory, of all accounts together. */
const MAX_EVENTS = 100_000;
/** An account that can't be read is read again after this time, since the operator may have skipped the event. */
const FAULTY_MAX_AGE_MS = 1_000;

export interface AsOf {
  readonly accountId: number;
  /** Only the account's events before this position count. */
  readonly position: Position;
}

/** The keys of an account. */
type Keys = Pick<Account, 'keys'>;

/** The reason why an account can't be read. */
export interface UnreadableAccount {
  readonly unreadable: string;
}

interface StoredEvent {
  readonly position: Position;
  readonly read: ReadAccountEvent;
}

/** An account's stream, folded up to the position that was last asked for. */
interface History {
  readonly accountId: number;
  readonly events: readonly StoredEvent[];
  readonly readAtMs: number;
  /** The length that the log had at least when the stream was read. */
  readonly completeTo: Position;
  folded: number;
  draft: AccountDraft | undefined;
  fault: string | undefined;
}

/**
 * Accounts as of a position in the log, which are the same live, late or in a replay. The rows answer if they have reached that
 * position and their account has not changed since. Otherwise the account's stream is folded up to it. Streams are read to the
 * end of the log, and a limited number of events is kept, so that a replay does not read a stream for each event.
 */
export class AccountHistory {
  readonly #store: EventStore;
  readonly #tables: RowReads | undefined;
  #rows: ReachedRows | undefined;
  readonly #histories = new LRUCache<number, History>({
    maxSize: MAX_EVENTS,
    sizeCalculation: ({ events }) => events.length + 1,
  });

  /** The streams answer if there are no rows of accounts. */
  constructor({ store, rows }: { readonly store: EventStore; readonly rows?: RowReads }) {
    this.#store = store;
    this.#tables = rows;
  }

  /** Reads together what `asOf` is about to be asked for. Rejects as the stores do. */
  async look(places: readonly AsOf[]): Promise<void> {
    const ids = [...new Set(places.map(({ accountId }) => accountId))];
    this.#rows = this.#tables && ids.length > 0 ? await readReached(this.#tables, ids) : undefined;
    await this.#read(places.filter((place) => !this.#rows?.(place) && !this.#known(place)));
  }

  /**
   * Calls `judge` with the account as of the place (`undefined` if it is not open yet) and returns its result. `judge`
   * must not keep the account, which changes in place. Rejects as the store does.
   */
  async asOf<T>(place: AsOf, judge: (account: Keys | undefined) => T): Promise<T | UnreadableAccount> {
    const current = this.#rows?.(place);
    if (current !== undefined) return judge(current.account);
    let history = this.#known(place) ?? (await this.#readOne(place));
    foldTo(history, place.position);
    if (history.fault !== undefined && steadyClock.now() >= history.readAtMs + FAULTY_MAX_AGE_MS) {
      history = await this.#readOne(place);
      foldTo(history, place.position);
    }
    return history.fault === undefined ? judge(history.draft) : { unreadable: history.fault };
  }

  #known({ accountId, position }: AsOf): History | undefined {
    const known = this.#histories.get(accountId);
    return known !== undefined && known.completeTo >= position ? known : undefined;
  }

  async #readOne(place: AsOf): Promise<History> {
    const [history] = await this.#read([place]);
    if (history === undefined) throw new Error(`no history of account ${place.accountId} was read`);
    return history;
  }

  /** Reads the streams of the accounts at these places. */
  async #read(places: readonly AsOf[]): Promise<History[]> {
    const last = places.reduce((most, { position }) => Math.max(most, position), 0);
    if (last === 0) return [];
    const readAtMs = steadyClock.now();
    const completeTo = Math.max(await this.#store.head(), last); // first, since the streams may grow while they are read
    const skipped = await readSkipped(this.#store);
    const accounts = new Map(places.map(({ accountId }) => [accountStream(accountId), accountId]));
    const histories: History[] = [];
    for await (const [stream, events] of readInParts(this.#store, [...accounts.keys()])) {
      const accountId = accounts.get(stream) ?? 0;
      const read = events.map((event) => ({
        position: event.position,
        read: readAccountEvent(event, skipped),
      }));
      const unfolded = { folded: 0, draft: undefined, fault: undefined };
      const history: History = { accountId, events: read, readAtMs, completeTo, ...unfolded };
      this.#histories.set(accountId, history);
      histories.push(history);
    }
    return histories;
  }
}

/** Folds the events up to the position, from the beginning if the account was folded beyond it. */
function foldTo(history: History, position: Position): void {
  const last = history.events[history.folded - 1];
  if (last !== undefined && last.position >= position) {
    history.folded = 0;
    history.draft = undefined;
    history.fault = undefined;
  }
  for (;;) {
    const next = history.events[history.folded];
    if (next === undefined || next.position >= position) return;
    history.folded++;
    if (history.fault !== undefined) continue;
    const { read } = next;
    const draft = read.ok ? nextDraft(history.draft, read, history.accountId) : { fault: read.reason };
    if ('fault' in draft) history.fault = draft.fault;
    else history.draft = draft;
  }
}
