import type { AccountKey } from '../../../domain/account.ts';
import { ACCOUNT_STREAMS, type AccountEvent } from '../../../domain/account-events.ts';
import { issuedKey, nextDraft } from '../../../domain/account-evolve.ts';
import { type FirstShown, missingBefore } from '../../../event-store/recorded-event.ts';
import {
  type AccountState,
  type DirectoryAccount,
  DirectoryEntry,
  type PlacedEvent,
  UnpackedEntries,
} from './directory-entry.ts';

/** An account's event and when it happened, or why it can't be read. */
export type ReadAccountEvent =
  | { readonly ok: true; readonly event: AccountEvent; readonly atMs: number }
  | { readonly ok: false; readonly reason: string };

/** One event of an account stream, as far as it could be read. */
export interface DirectoryEvent {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly decoded: ReadAccountEvent;
}

export interface DirectoryKey {
  readonly entry: DirectoryAccount;
  readonly key: AccountKey;
}

/** The number of accounts that stay unpacked: about as many as a busy minute uses. */
const KEPT_UNPACKED = 4_000;

const ACCOUNT_STREAM = new RegExp(`^${ACCOUNT_STREAMS}(0|[1-9][0-9]*)$`);

/**
 * Every account with its groups, corporates, profiles, keys and webhooks, folded from the account streams.
 *
 * It fails closed, one account at a time: an event that can't be read, can't follow those before it, or is missing
 * makes its account unreadable. Applying an event again changes nothing.
 */
export class Directory {
  readonly #entries = new Map<number, DirectoryEntry>();
  /** The account that has each key, by the key's prefix. */
  readonly #owners = new Map<string, DirectoryEntry>();
  readonly #unpacked: UnpackedEntries;
  #position = 0;
  #disabledWebhooks = 0;
  #unreadable = 0;

  /** `kept`: how many accounts stay unpacked once they were used. */
  constructor({ kept = KEPT_UNPACKED }: { readonly kept?: number } = {}) {
    this.#unpacked = new UnpackedEntries(kept);
  }

  /** The position up to which everything has been applied. */
  get position(): number {
    return this.#position;
  }

  /** Notes that the log holds no further account event up to `position`. Never moves back. */
  advance(position: number): void {
    this.#position = Math.max(this.#position, position);
  }

  account(id: number): DirectoryAccount | undefined {
    return this.#entries.get(id);
  }

  /** Counts the disabled webhooks of active keys and the unreadable accounts. */
  get counts(): { readonly disabledWebhooks: number; readonly unreadable: number } {
    return { disabledWebhooks: this.#disabledWebhooks, unreadable: this.#unreadable };
  }

  /** All accounts. Reading the `account` of one unpacks it. */
  accounts(): Iterable<DirectoryAccount> {
    return this.#entries.values();
  }

  /** The key with this prefix, active or not. A key of an unreadable account is as it was last read. */
  key(prefix: string): DirectoryKey | undefined {
    const entry = this.#owners.get(prefix);
    const key = entry?.keys?.get(prefix);
    return entry === undefined || key === undefined ? undefined : { entry, key };
  }

  /** The last `keyEvents` of all accounts, in the order of the log. */
  keyEvents(): PlacedEvent[] {
    const kept = this.#entries.values().flatMap(({ keyEvents }) => keyEvents?.values() ?? []);
    return [...kept].sort((a, b) => a.position - b.position);
  }

  /**
   * The packed accounts, to be stored, in the order of `accounts`. Accounts added during the iteration are included.
   */
  states(): Iterable<AccountState> {
    return this.#entries.values();
  }

  /**
   * Takes over the states of another directory. `position` is that directory's position when the first state was read.
   * Later states may be newer: the events after `position` are applied again, and change nothing the second time. The
   * caller must then fold unreadable accounts again, up to `position`.
   */
  restore(states: Iterable<AccountState>, position: number): void {
    for (const state of states) {
      const entry = this.#entry(state.id);
      this.#changing(entry, () => entry.restore(state));
      for (const prefix of state.packed?.prefixes ?? state.lastKeys?.keys() ?? [])
        this.#owners.set(prefix, entry);
    }
    this.advance(position);
  }

  /** Resets an unreadable account and applies these events of its stream, from the first on. */
  refold(id: number, events: Iterable<DirectoryEvent>): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.unreadable === null) return;
    for (const prefix of entry.lastKeys?.keys() ?? []) this.#owners.delete(prefix);
    this.#changing(entry, () => entry.restore(new DirectoryEntry(id, this.#unpacked)));
    for (const event of events) this.apply(event);
  }

  /**
   * Applies the next event of an account stream. Returns the account if this event made it unreadable. A stream that is
   * not named after an account is ignored.
   */
  apply(event: DirectoryEvent): DirectoryAccount | undefined {
    this.advance(event.position);
    const id = Number(ACCOUNT_STREAM.exec(event.stream)?.[1]);
    if (!Number.isSafeInteger(id)) return undefined;
    const entry = this.#entry(id);
    if (event.revision <= entry.revision) return undefined;
    const missing = event.revision !== entry.revision + 1;
    entry.revision = event.revision;
    entry.position = event.position;
    if (event.decoded.ok)
      entry.keep({ event: event.decoded.event, position: event.position, atMs: event.decoded.atMs });
    const isFirst = this.#changing(entry, () => {
      const fault = missing ? missingBefore(event) : this.#evolve(entry, event);
      return fault !== undefined && markUnreadable(entry, { position: event.position, reason: fault });
    });
    if (entry.unreadable !== null) this.#keepPrefix(entry, event);
    return isFirst ? entry : undefined;
  }

  /**
   * Closes the account of a stream whose first events the event store no longer shows. Returns the account if it was open.
   */
  close(event: FirstShown & { readonly position: number }): DirectoryAccount | undefined {
    const entry = this.#entries.get(Number(ACCOUNT_STREAM.exec(event.stream)?.[1]));
    if (entry === undefined) return undefined;
    const fault = { position: event.position, reason: missingBefore(event) };
    return this.#changing(entry, () => markUnreadable(entry, fault)) ? entry : undefined;
  }

  #entry(id: number): DirectoryEntry {
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = new DirectoryEntry(id, this.#unpacked);
      this.#entries.set(id, entry);
    }
    return entry;
  }

  /** Makes a change to an entry and updates the counts, so that reading them does not visit every account. */
  #changing<T>(entry: DirectoryEntry, change: () => T): T {
    const { disabledWebhooks, unreadable } = entry;
    const result = change();
    this.#disabledWebhooks += entry.disabledWebhooks - disabledWebhooks;
    this.#unreadable += Number(entry.unreadable !== null) - Number(unreadable !== null);
    return result;
  }

  /** Returns why the event can't be applied; `undefined` if it was, or if its account was unreadable already. */
  #evolve(entry: DirectoryEntry, { decoded }: DirectoryEvent): string | undefined {
    if (entry.unreadable !== null) return undefined;
    if (!decoded.ok) return decoded.reason;
    const { event, atMs } = decoded;
    if (event.type === 'KeyIssued') {
      const owner = this.#owners.get(event.data.prefix);
      if (owner !== undefined && owner !== entry) {
        return `key ${event.data.prefix} belongs to account ${owner.id}`;
      }
    }
    const next = nextDraft(entry.account, { event, atMs }, entry.id);
    if ('fault' in next) return next.fault;
    entry.evolved(next);
    if (event.type === 'KeyIssued') this.#owners.set(event.data.prefix, entry);
    return undefined;
  }

  /** Remembers a key issued on an unreadable account, so that it is answered like the account's other keys. */
  #keepPrefix(entry: DirectoryEntry, { decoded }: DirectoryEvent): void {
    if (!decoded.ok || decoded.event.type !== 'KeyIssued') return;
    if (decoded.event.data.account_id !== entry.id) return;
    const key = issuedKey(decoded.event);
    if (this.#owners.has(key.prefix)) return;
    this.#owners.set(key.prefix, entry);
    entry.lastKeys?.set(key.prefix, key);
  }
}

/** Marks the account unreadable. Returns true if it was readable before. */
function markUnreadable(
  entry: DirectoryEntry,
  fault: { readonly position: number; readonly reason: string },
): boolean {
  if (entry.unreadable !== null) return false;
  entry.unreadable = fault;
  entry.lastKeys = new Map(entry.account?.keys);
  entry.evolved(undefined);
  return true;
}
