import { deliveryEffect } from '../../../../projections/deliveries.ts';
import type { Account, AccountKey } from '../../../domain/account.ts';
import type { AccountEvent } from '../../../domain/account-events.ts';
import type { AccountDraft } from '../../../domain/account-evolve.ts';
import {
  countDisabledWebhooks,
  masterKeysOf,
  type PackedAccount,
  packAccount,
  unpackAccount,
} from './packed-account.ts';

/** One account stream as the directory knows it. The object changes in place as events are applied. */
export interface DirectoryAccount {
  readonly id: number;
  /**
   * `undefined` once the account is unreadable: nothing of it is served. Don't keep a reference to it: the entry may be
   * packed in the meantime, and the kept object would no longer change with it.
   */
  readonly account: Account | undefined;
  /** The keys by prefix. Those of an unreadable account are as they were last read. */
  readonly keys: ReadonlyMap<string, AccountKey> | undefined;
  /** See `PackedAccount.masterKeys`; reading it does not unpack the account. */
  readonly masterKeys: readonly string[];
  /** The position and revision of the last event seen. */
  readonly position: number;
  readonly revision: number;
  /** The first event that could not be applied. It stays until the directory is rebuilt. */
  readonly unreadable: { readonly position: number; readonly reason: string } | null;
}

export interface PlacedEvent {
  readonly event: AccountEvent;
  readonly position: number;
  readonly atMs: number;
}

/** Everything that a directory keeps about one account, so that another directory can continue from it. */
export interface AccountState extends Omit<DirectoryAccount, 'account' | 'keys' | 'masterKeys'> {
  /** `undefined` before the account's first event is applied, and once it is unreadable. */
  readonly packed: PackedAccount | undefined;
  /** Keys of an unreadable account, kept so that their prefixes are still found. */
  readonly lastKeys: ReadonlyMap<string, AccountKey> | undefined;
  /** The last event that ended the deliveries of each key, and the last that enabled its webhook. */
  readonly keyEvents: ReadonlyMap<string, PlacedEvent> | undefined;
}

/** An account of the directory. It is unpacked when it is used, and packed again after enough others have been used. */
export class DirectoryEntry implements DirectoryAccount, AccountState {
  readonly id: number;
  position = 0;
  revision = -1;
  unreadable: DirectoryAccount['unreadable'] = null;
  lastKeys: Map<string, AccountKey> | undefined;
  keyEvents: Map<string, PlacedEvent> | undefined;
  readonly #unpacked: UnpackedEntries;
  #draft: AccountDraft | undefined;
  /** The account as text; `undefined` while the draft is newer. */
  #packed: PackedAccount | undefined;

  constructor(id: number, unpacked: UnpackedEntries) {
    this.id = id;
    this.#unpacked = unpacked;
  }

  get account(): AccountDraft | undefined {
    if (this.#draft === undefined && this.#packed !== undefined) this.#draft = unpackAccount(this.#packed);
    if (this.#draft !== undefined) this.#unpacked.used(this);
    return this.#draft;
  }

  get packed(): PackedAccount | undefined {
    if (this.#packed === undefined && this.#draft !== undefined) this.#packed = packAccount(this.#draft);
    return this.#packed;
  }

  get keys(): ReadonlyMap<string, AccountKey> | undefined {
    return this.account?.keys ?? this.lastKeys;
  }

  get masterKeys(): readonly string[] {
    return this.#packed?.masterKeys ?? masterKeysOf(this.#draft);
  }

  get disabledWebhooks(): number {
    return this.#packed?.disabledWebhooks ?? countDisabledWebhooks(this.#draft);
  }

  /** Takes over a draft that has changed. */
  evolved(draft: AccountDraft | undefined): void {
    this.#draft = draft;
    this.#packed = undefined;
    if (draft !== undefined) this.#unpacked.used(this);
  }

  /** Remembers the events of a key's past that the dispatcher needs and that the account does not contain. */
  keep(placed: PlacedEvent): void {
    const effect = deliveryEffect(placed.event);
    if (effect === undefined) return;
    this.keyEvents ??= new Map();
    this.keyEvents.set(`${effect.kind} ${effect.prefix}`, placed);
  }

  restore({ position, revision, unreadable, packed, lastKeys, keyEvents }: AccountState): void {
    this.position = position;
    this.revision = revision;
    this.unreadable = unreadable;
    this.lastKeys = lastKeys && new Map(lastKeys);
    this.keyEvents = keyEvents && new Map(keyEvents);
    this.#draft = undefined;
    this.#packed = packed;
  }

  /** Drops the objects and keeps only the text. */
  pack(): void {
    this.#packed = this.packed;
    this.#draft = undefined;
  }
}

/** The accounts that are unpacked: the most recently used ones. */
export class UnpackedEntries {
  readonly #kept: number;
  /** The entries in the order of their last use, the most recent one last. */
  readonly #entries = new Set<DirectoryEntry>();

  constructor(kept: number) {
    this.#kept = kept;
  }

  used(entry: DirectoryEntry): void {
    this.#entries.delete(entry);
    this.#entries.add(entry);
    if (this.#entries.size <= this.#kept) return;
    const [oldest] = this.#entries;
    if (oldest === undefined) return;
    oldest.pack();
    this.#entries.delete(oldest);
  }
}
