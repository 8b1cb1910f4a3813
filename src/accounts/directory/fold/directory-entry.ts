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

/** One account stream as the directory knows it. It changes in place as events are applied. */
export interface DirectoryAccount {
  readonly id: number;
  /**
   * `undefined` once the account is unreadable: nothing of it is served. To be used at once: it may be packed again, and
   * what was kept of it would not change with it.
   */
  readonly account: Account | undefined;
  /** By prefix; those of an unreadable account as they were last read. */
  readonly keys: ReadonlyMap<string, AccountKey> | undefined;
  /** As `PackedAccount.masterKeys`: known without a look at the account. */
  readonly masterKeys: readonly string[];
  /** Of the last event seen. */
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

/** All that a directory keeps of one account, so that another can continue from it. */
export interface AccountState extends Omit<DirectoryAccount, 'account' | 'keys' | 'masterKeys'> {
  /** `undefined` before its first event was applied, and once it is unreadable. */
  readonly packed: PackedAccount | undefined;
  /** Keys of an unreadable account, kept so that their prefixes are still found. */
  readonly lastKeys: ReadonlyMap<string, AccountKey> | undefined;
  /** The last event that ended the deliveries of each key, and the last that enabled its webhook. */
  readonly keyEvents: ReadonlyMap<string, PlacedEvent> | undefined;
}

/** An account of the directory. It is unpacked when it is looked at, and packed again when others were since. */
export class DirectoryEntry implements DirectoryAccount, AccountState {
  readonly id: number;
  position = 0;
  revision = -1;
  unreadable: DirectoryAccount['unreadable'] = null;
  lastKeys: Map<string, AccountKey> | undefined;
  keyEvents: Map<string, PlacedEvent> | undefined;
  readonly #unpacked: UnpackedEntries;
  #draft: AccountDraft | undefined;
  /** As old as the last time that it was packed: `undefined` while the draft is newer. */
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

  /** Takes over the draft, which has changed. */
  evolved(draft: AccountDraft | undefined): void {
    this.#draft = draft;
    this.#packed = undefined;
    if (draft !== undefined) this.#unpacked.used(this);
  }

  /** Keeps what the dispatcher must know of a key's past and the account does not say. */
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

  /** Keeps its text alone. */
  pack(): void {
    this.#packed = this.packed;
    this.#draft = undefined;
  }
}

/** The accounts that are unpacked: those that were used last. */
export class UnpackedEntries {
  readonly #kept: number;
  /** The one that was used last is the last. */
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
