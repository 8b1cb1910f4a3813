import { deliveryEffect } from '../../../projections/deliveries.ts';
import type { AccountKey } from '../../domain/account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { type AccountDraft, issuedKey, nextDraft } from '../../domain/account-evolve.ts';
import { missingBefore, type Position, type RecordedEvent } from '../../event-store/recorded-event.ts';
import type { SkippedEvents } from '../../event-store/skipped-events.ts';
import { type ReadAccountEvent, readAccountEvent } from '../read-account-event.ts';

/** A key, with what its account's events say besides. */
export interface FoldedKey {
  readonly key: AccountKey;
  /** The last event that ended its deliveries. */
  readonly ended: { readonly position: Position; readonly reason: string } | undefined;
  /** The time at which its webhook was enabled last. */
  readonly enabledAtMs: number | undefined;
}

/** An account as its events make it. */
export interface FoldedAccount {
  readonly id: number;
  /** The revision of the last event; -1 without events. */
  readonly revision: number;
  /** The account before the first event that can't be applied; `undefined` if it was not open by then. */
  readonly account: AccountDraft | undefined;
  /** The keys by prefix, those that were issued after that event too. */
  readonly keys: ReadonlyMap<string, FoldedKey>;
  /** The first event that can't be applied, if there is one. Nothing of the account may be served then. */
  readonly unreadable: { readonly position: Position; readonly reason: string } | undefined;
}

export interface FoldTerms {
  readonly skipped: SkippedEvents;
  /** Returns the account that has the key with this prefix, if one is known. */
  readonly ownerOf: (prefix: string) => number | undefined;
}

/**
 * Folds the events of an account's stream, from the first on, in their order. An event that can't be read, can't follow
 * those before it, or is missing makes the account unreadable. The same events always make the same account.
 */
export function foldAccount(id: number, events: Iterable<RecordedEvent>, terms: FoldTerms): FoldedAccount {
  const fold = new AccountFold(id, terms);
  for (const event of events) fold.add(event);
  return fold.folded();
}

class AccountFold {
  readonly #id: number;
  readonly #terms: FoldTerms;
  #revision = -1;
  #draft: AccountDraft | undefined;
  #unreadable: FoldedAccount['unreadable'];
  /** The keys that were issued after the account became unreadable. */
  readonly #later = new Map<string, AccountKey>();
  readonly #ended = new Map<string, NonNullable<FoldedKey['ended']>>();
  readonly #enabledAtMs = new Map<string, number>();

  constructor(id: number, terms: FoldTerms) {
    this.#id = id;
    this.#terms = terms;
  }

  add(recorded: RecordedEvent): void {
    const { position, revision } = recorded;
    const isNext = revision === this.#revision + 1;
    this.#revision = revision;
    const read = readAccountEvent(recorded, this.#terms.skipped);
    if (read.ok) this.#addEffect(read, position);
    if (this.#unreadable === undefined) {
      const reason = isNext ? this.#evolve(read) : missingBefore(recorded);
      if (reason !== undefined) this.#unreadable = { position, reason };
    }
    if (this.#unreadable !== undefined && read.ok) this.#addLater(read);
  }

  folded(): FoldedAccount {
    const keys = [...this.#later.values(), ...(this.#draft?.keys.values() ?? [])];
    const facts = keys.map((key): [string, FoldedKey] => {
      const { prefix } = key;
      return [prefix, { key, ended: this.#ended.get(prefix), enabledAtMs: this.#enabledAtMs.get(prefix) }];
    });
    return {
      id: this.#id,
      revision: this.#revision,
      account: this.#draft,
      keys: new Map(facts),
      unreadable: this.#unreadable,
    };
  }

  /** Returns why the event can't be applied; `undefined` if it was. */
  #evolve(read: ReadAccountEvent): string | undefined {
    if (!read.ok) return read.reason;
    const { event } = read;
    const owner = event.type === 'KeyIssued' ? this.#terms.ownerOf(event.data.prefix) : undefined;
    if (event.type === 'KeyIssued' && owner !== undefined && owner !== this.#id)
      return `key ${event.data.prefix} belongs to account ${owner}`;
    const next = nextDraft(this.#draft, read, this.#id);
    if ('fault' in next) return next.fault;
    this.#draft = next;
    return undefined;
  }

  #addEffect({ event, atMs }: Extract<ReadAccountEvent, { ok: true }>, position: Position): void {
    const effect = deliveryEffect(event);
    if (effect?.kind === 'ended') this.#ended.set(effect.prefix, { position, reason: effect.reason });
    if (effect?.kind === 'enabled') this.#enabledAtMs.set(effect.prefix, atMs);
  }

  /** Keeps a key that is issued while the account is unreadable, so that it is answered like the account's other keys. */
  #addLater({ event }: Extract<ReadAccountEvent, { ok: true }>): void {
    if (event.type !== 'KeyIssued' || event.data.account_id !== this.#id) return;
    const { prefix } = event.data;
    const isOthers = (this.#terms.ownerOf(prefix) ?? this.#id) !== this.#id;
    if (isOthers || this.#draft?.keys.has(prefix)) return;
    this.#later.set(prefix, issuedKey(event));
  }
}

/** An account of which the event store shows no event any more. */
export function hiddenAccount(id: number, position: Position): FoldedAccount {
  const reason = missingBefore({ stream: accountStream(id), revision: undefined });
  return { id, revision: -1, account: undefined, keys: new Map(), unreadable: { position, reason } };
}
