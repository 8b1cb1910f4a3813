import { LRUCache } from 'lru-cache';
import { readAccountEvent } from '../../accounts/directory/apply-to-directory.ts';
import type { Directory, ReadAccountEvent } from '../../accounts/directory/fold/directory.ts';
import { steadyClock } from '../../base/clock.ts';
import type { Account } from '../../domain/account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { type AccountDraft, nextDraft } from '../../domain/account-evolve.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';

/** The most events that are kept in memory, of all accounts together. */
const MAX_EVENTS = 100_000;
/** An account that can't be read is read again after this time, since the operator may have skipped the event. */
const FAULTY_MAX_AGE_MS = 1_000;

interface AsOf {
  readonly accountId: number;
  /** Only the account's events before this position count. */
  readonly position: Position;
}

/** Why an account can't be read. */
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
 * Accounts as of a position in the log, which are the same live, late or in a replay. The directory answers if its account
 * has not changed since that position. Otherwise the account's stream is folded up to it. Streams are read to the end of
 * the log, and a limited number of events is kept, so that a replay does not read a stream for each event.
 */
export class AccountHistory {
  readonly #store: EventStore;
  readonly #directory: Pick<Directory, 'account' | 'position'>;
  readonly #histories = new LRUCache<number, History>({
    maxSize: MAX_EVENTS,
    sizeCalculation: ({ events }) => events.length + 1,
  });

  constructor({
    store,
    directory,
  }: {
    readonly store: EventStore;
    /** Kept up to date by its owner. */
    readonly directory: Pick<Directory, 'account' | 'position'>;
  }) {
    this.#store = store;
    this.#directory = directory;
  }

  /**
   * Calls `judge` with the account as of the place (`undefined` if it is not open yet) and returns its result. `judge`
   * must not keep the account, which changes in place. Rejects as the store does.
   */
  async asOf<T>(place: AsOf, judge: (account: Account | undefined) => T): Promise<T | UnreadableAccount> {
    const current = this.#fromDirectory(place);
    if (current !== undefined) return judge(current.account);
    const known = this.#histories.get(place.accountId);
    let history = known !== undefined && known.completeTo >= place.position ? known : await this.#read(place);
    foldTo(history, place.position);
    if (history.fault !== undefined && steadyClock.now() >= history.readAtMs + FAULTY_MAX_AGE_MS) {
      history = await this.#read(place);
      foldTo(history, place.position);
    }
    return history.fault === undefined ? judge(history.draft) : { unreadable: history.fault };
  }

  #fromDirectory({ accountId, position }: AsOf): { account: Account | undefined } | undefined {
    if (this.#directory.position < position) return undefined;
    const entry = this.#directory.account(accountId);
    if (entry === undefined) return { account: undefined };
    if (entry.position >= position || entry.unreadable !== null) return undefined;
    return { account: entry.account };
  }

  async #read({ accountId, position }: AsOf): Promise<History> {
    const readAtMs = steadyClock.now();
    const head = await this.#store.head(); // first, since the stream may grow while it is read
    const skipped = await readSkipped(this.#store);
    const events = await this.#store.readStream(accountStream(accountId));
    const history: History = {
      accountId,
      events: events.map((event) => ({ position: event.position, read: readAccountEvent(event, skipped) })),
      readAtMs,
      completeTo: Math.max(head, position),
      folded: 0,
      draft: undefined,
      fault: undefined,
    };
    this.#histories.set(accountId, history);
    return history;
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
