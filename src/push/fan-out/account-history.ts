import { LRUCache } from 'lru-cache';
import { readAccountEvent } from '../../accounts/directory/apply-to-directory.ts';
import type { Directory, ReadAccountEvent } from '../../accounts/directory/fold/directory.ts';
import { world } from '../../base/world.ts';
import type { Account } from '../../domain/account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { type AccountDraft, nextDraft } from '../../domain/account-evolve.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { NONE_SKIPPED, readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';

/** Events of account streams kept in memory at most, of all accounts together. */
const MAX_EVENTS = 100_000;
const SKIPPED_MAX_AGE_MS = 1_000;

export interface AsOf {
  readonly accountId: number;
  /** The account's events before this position count. */
  readonly position: Position;
}

/** What was judged of an account, or why the account can't be read. */
export type Judged<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unreadable'; readonly reason: string };

interface StoredEvent {
  readonly position: Position;
  readonly read: ReadAccountEvent;
}

/** An account's stream, folded up to the position that was last asked for. */
interface History {
  readonly accountId: number;
  readonly events: readonly StoredEvent[];
  readonly skipped: SkippedEvents;
  /** The stream was read when the log was at least this long. */
  readonly completeTo: Position;
  folded: number;
  draft: AccountDraft | undefined;
  fault: string | undefined;
}

/**
 * Accounts as of a position of the log: the answer is the same live, late or in a replay. The directory answers where
 * its account is known to be the same as at that position; otherwise the account's stream is folded up to it. A
 * stream is read once, to the present end of the log, and a limited number is kept: a replay of a long history does
 * not read it for each event.
 */
export class AccountHistory {
  readonly #store: EventStore;
  readonly #directory: Pick<Directory, 'account' | 'position'>;
  #skipped = NONE_SKIPPED;
  #readSkippedAtMs = Number.NEGATIVE_INFINITY;
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
   * Calls `judge` with the account as of the place (`undefined`: not open yet) and returns its result. `judge` must
   * not keep the account: it changes in place. Rejects as the store does.
   */
  async asOf<T>(place: AsOf, judge: (account: Account | undefined) => T): Promise<Judged<T>> {
    const known = this.known(place, judge);
    if (known !== undefined) return known;
    let history = await this.#history(place);
    foldTo(history, place.position);
    if (history.fault !== undefined && (await this.#hasSkippedMore(history))) {
      this.#histories.delete(place.accountId);
      history = await this.#history(place);
      foldTo(history, place.position);
    }
    if (history.fault !== undefined) return { kind: 'unreadable', reason: history.fault };
    return { kind: 'known', value: judge(history.draft) };
  }

  /** As `asOf`, where nothing has to be read for it; `undefined` otherwise. */
  known<T>(place: AsOf, judge: (account: Account | undefined) => T): Judged<T> | undefined {
    const current = this.#fromDirectory(place);
    if (current !== undefined) return { kind: 'known', value: judge(current.account) };
    const history = this.#histories.get(place.accountId);
    if (history === undefined || history.completeTo < place.position) return undefined;
    foldTo(history, place.position);
    return history.fault === undefined ? { kind: 'known', value: judge(history.draft) } : undefined;
  }

  #fromDirectory({ accountId, position }: AsOf): { account: Account | undefined } | undefined {
    if (this.#directory.position < position) return undefined;
    const entry = this.#directory.account(accountId);
    if (entry === undefined) return { account: undefined };
    if (entry.position >= position || entry.unreadable !== null) return undefined;
    return { account: entry.account };
  }

  /** Whether the operator has skipped an event since the history was read. An unreadable account asks often. */
  async #hasSkippedMore({ skipped }: History): Promise<boolean> {
    if (world.elapsedMs() >= this.#readSkippedAtMs + SKIPPED_MAX_AGE_MS) {
      this.#readSkippedAtMs = world.elapsedMs();
      const now = await readSkipped(this.#store);
      if (now.size !== this.#skipped.size) this.#skipped = now;
    }
    return this.#skipped !== skipped;
  }

  async #history({ accountId, position }: AsOf): Promise<History> {
    const known = this.#histories.get(accountId);
    if (known !== undefined && known.completeTo >= position) return known;
    const head = await this.#store.head(); // before the stream is read: it may only grow from here
    const more = await this.#store.readStream(accountStream(accountId), {
      fromRevision: known?.events.length ?? 0,
    });
    const skipped = this.#skipped;
    const history: History = {
      accountId,
      skipped,
      events: [
        ...(known?.events ?? []),
        ...more.map((event) => ({ position: event.position, read: readAccountEvent(event, skipped) })),
      ],
      completeTo: Math.max(head, position),
      folded: known?.folded ?? 0,
      draft: known?.draft,
      fault: known?.fault,
    };
    this.#histories.set(accountId, history);
    return history;
  }
}

/** Continues folding to the position; starts again where the account was folded beyond it. */
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
