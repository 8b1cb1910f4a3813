import { type ReadAccountEvent, readAccountEvent } from '../../../src/accounts/read-account-event.ts';
import type { Account, AccountKey } from '../../../src/domain/account.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import { type AccountDraft, issuedKey, nextDraft } from '../../../src/domain/account-evolve.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { readToEnd } from '../../../src/event-store/reads.ts';
import { missingBefore, type Position, type RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { readSkipped } from '../../../src/event-store/skipped-events.ts';

/** An event of an account's stream, as far as it can be read. */
export interface ModelEvent {
  readonly position: Position;
  readonly stream: string;
  readonly revision: number;
  readonly decoded: ReadAccountEvent;
}

/** An account as its events make it. */
export interface ModelAccount {
  readonly id: number;
  readonly revision: number;
  readonly position: Position;
  readonly account: Account | undefined;
  readonly keys: ReadonlyMap<string, AccountKey>;
  readonly unreadable: { readonly position: Position; readonly reason: string } | null;
}

interface Entry {
  revision: number;
  position: Position;
  draft: AccountDraft | undefined;
  readonly later: Map<string, AccountKey>;
  unreadable: ModelAccount['unreadable'];
}

/** All accounts, folded in memory one event after the other: what the rows of accounts must say. */
export class AccountModel {
  readonly #entries = new Map<number, Entry>();
  readonly #owners = new Map<string, number>();

  apply({ position, stream, revision, decoded }: ModelEvent): void {
    const id = Number(stream.slice('account-'.length));
    const fresh = { revision: -1, position: 0, draft: undefined, later: new Map(), unreadable: null };
    const entry: Entry = this.#entries.get(id) ?? fresh;
    this.#entries.set(id, entry);
    const isNext = revision === entry.revision + 1;
    Object.assign(entry, { revision, position });
    const issued = decoded.ok && decoded.event.type === 'KeyIssued' ? decoded.event.data : undefined;
    if (issued?.account_id === id && !this.#owners.has(issued.prefix)) this.#owners.set(issued.prefix, id);
    if (entry.unreadable === null) {
      const reason = isNext
        ? this.#evolve(entry, id, decoded)
        : missingBefore({ stream: accountStream(id), revision });
      if (reason !== undefined) entry.unreadable = { position, reason };
    }
    const isOwn = issued?.account_id === id && this.#owners.get(issued.prefix) === id;
    if (entry.unreadable !== null && isOwn && decoded.ok && decoded.event.type === 'KeyIssued')
      if (!entry.draft?.keys.has(issued.prefix)) entry.later.set(issued.prefix, issuedKey(decoded.event));
  }

  /** Applies events to account 7, at the next positions. */
  applyAll(...events: readonly AccountEvent[]): this {
    for (const event of events) {
      const revision = (this.#entries.get(7)?.revision ?? -1) + 1;
      const decoded = { ok: true, event, atMs: 1_000 } as const;
      this.apply({ position: revision + 1, stream: accountStream(7), revision, decoded });
    }
    return this;
  }

  account(id: number): ModelAccount | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const { revision, position, draft, later, unreadable } = entry;
    const keys = new Map([...later, ...(draft?.keys ?? [])]);
    return { id, revision, position, account: unreadable === null ? draft : undefined, keys, unreadable };
  }

  accounts(): ModelAccount[] {
    return [...this.#entries.keys()].flatMap((id) => this.account(id) ?? []);
  }

  key(prefix: string): { readonly entry: ModelAccount; readonly key: AccountKey } | undefined {
    const entry = this.accounts().find(({ keys }) => keys.has(prefix));
    const key = entry?.keys.get(prefix);
    return entry && key && { entry, key };
  }

  #evolve(entry: Entry, id: number, decoded: ReadAccountEvent): string | undefined {
    if (!decoded.ok) return decoded.reason;
    const { event } = decoded;
    const owner = event.type === 'KeyIssued' ? this.#owners.get(event.data.prefix) : undefined;
    if (event.type === 'KeyIssued' && owner !== undefined && owner !== id)
      return `key ${event.data.prefix} belongs to account ${owner}`;
    const next = nextDraft(entry.draft, decoded, id);
    if ('fault' in next) return next.fault;
    entry.draft = next;
    return undefined;
  }
}

export async function modelOf(store: EventStore): Promise<AccountModel> {
  const model = new AccountModel();
  const skipped = await readSkipped(store);
  const events: RecordedEvent[] = [];
  for await (const batch of readToEnd(store, { prefixes: ['account-'], after: 0 }))
    events.push(...batch.events);
  for (const event of events) model.apply({ ...event, decoded: readAccountEvent(event, skipped) });
  return model;
}
