import type { LoggedEvent } from '../../support/engines/memory-log.ts';
import type { NoticeType } from './mails.ts';

interface Evidence {
  readonly atMs: number;
  readonly failed: number;
  readonly sinceMs: number | null;
}

export interface ModelKey {
  readonly prefix: string;
  isOn: boolean;
  /** The time at which it was last switched off or on. */
  changedAtMs: number;
  webhook: { url: string; setAtMs: number; isDisabled: boolean } | undefined;
  showsNumbers: boolean;
  /** Every URL of the webhook, with its time. */
  readonly urls: { readonly url: string; readonly fromMs: number; untilMs: number }[];
  /** The evidence of its warnings, and of its being switched off for failures. */
  readonly warned: Evidence[];
  readonly switchedOff: Evidence[];
  /** The notices that are sent by mail. */
  readonly notices: { readonly type: NoticeType; readonly atMs: number }[];
  /** The time at which it was last enabled again. */
  enabledAtMs: number;
  /** The times when it was switched off, removed or disabled. */
  readonly endedAtMs: number[];
  /** The number of requested redeliveries. */
  redeliveries: number;
}

interface ModelAccount {
  readonly id: number;
  isEnabled: boolean;
  readonly profiles: Map<string, { fromMs: number; toMs: number }>;
  readonly keys: Map<string, ModelKey>;
  /** The time at which events last changed its access. */
  accessChangedAtMs: number;
}

export interface ModelTransaction {
  readonly id: number;
  readonly account: number;
  readonly status: 'CONFIRMED' | 'EXTERNAL';
  readonly createdAtMs: number;
  readonly recordedAtMs: number;
  readonly data: Readonly<Record<string, unknown>>;
  withdrawnAtMs: number | undefined;
  /** The prefixes of the keys that are owed it. */
  readonly owedTo: ReadonlySet<string>;
  /** Those of them that could see the driver's number when it was recorded. */
  readonly numberFor: ReadonlySet<string>;
}

type Data = Readonly<Record<string, unknown>>;

export function isVisible({ withdrawnAtMs }: ModelTransaction): boolean {
  return withdrawnAtMs === undefined;
}

/** A model of the events, with its own rules, one event at a time. */
export class Model {
  readonly accounts = new Map<number, ModelAccount>();
  readonly transactions = new Map<number, ModelTransaction>();
  /** The erased transactions, with a value that only their record contains. */
  readonly erased = new Map<number, number>();
  #position = 0;

  /** The position of the last event that it has read. */
  get position(): number {
    return this.#position;
  }

  /** Reads the new events of the log. */
  read(events: readonly LoggedEvent[]): void {
    for (const event of events) {
      this.#position = event.position;
      this.#see(event);
    }
  }

  keyOf(prefix: string): { account: ModelAccount; key: ModelKey } | undefined {
    for (const account of this.accounts.values()) {
      const key = account.keys.get(prefix);
      if (key !== undefined) return { account, key };
    }
    return undefined;
  }

  /** True if the account's requests are answered and its deliveries sent at this moment. */
  hasAccess(account: ModelAccount, atMs: number): boolean {
    if (!account.isEnabled) return false;
    return [...account.profiles.values()].some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
  }

  /** True if it had access all the time. A change by an event in that time counts as no. */
  hadAccess(account: ModelAccount, fromMs: number, toMs: number): boolean {
    return account.accessChangedAtMs < fromMs && this.accessIn(account, fromMs, toMs) === true;
  }

  /** Says if its current profiles give access in that time; `undefined` if they do in a part of it. */
  accessIn(account: ModelAccount, fromMs: number, toMs: number): boolean | undefined {
    const moments = [...account.profiles.values()].flatMap((profile) => [profile.fromMs, profile.toMs]);
    const inside = moments.filter((ms) => fromMs < ms && ms <= toMs);
    const access = new Set([fromMs, ...inside].map((ms) => this.hasAccess(account, ms)));
    return access.size === 1 ? access.has(true) : undefined;
  }

  /** Returns the visible transactions, newest first. */
  visible(account: number): ModelTransaction[] {
    return [...this.transactions.values()]
      .filter((each) => each.account === account && isVisible(each))
      .sort((a, b) => b.createdAtMs - a.createdAtMs || b.id - a.id);
  }

  #see({ stream, type, data, metadata, recordedAtMs }: LoggedEvent): void {
    const parsed = JSON.parse(data) as Data;
    if (stream.startsWith('transaction-') && metadata.includes('"recorded_position":'))
      this.#rewrite(Number(stream.slice('transaction-'.length)), parsed);
    else if (stream.startsWith('transaction-')) this.#seeTransaction(type, parsed, recordedAtMs);
    else if (stream.startsWith('account-')) this.#seeAccount(type, parsed, recordedAtMs);
    else if (type === 'TransactionErased') {
      const id = Number(parsed.transaction_id);
      this.transactions.delete(id);
      this.erased.set(id, recordedAtMs);
    }
  }

  /** Handles a redacted event. EventStoreDB can't change it, so the log has it a second time, which counts. */
  #rewrite(id: number, data: Data): void {
    const transaction = this.transactions.get(id);
    if (transaction !== undefined && 'driver' in data) this.transactions.set(id, { ...transaction, data });
  }

  #seeTransaction(type: string, data: Data, atMs: number): void {
    const id = Number(data.transaction_id);
    if (type === 'TransactionVoided' || type === 'TransactionCancelled') {
      const transaction = this.transactions.get(id);
      if (transaction !== undefined) transaction.withdrawnAtMs ??= atMs;
      return;
    }
    if (this.transactions.has(id)) throw new Error(`transaction ${id} is recorded twice`);
    const account = Number(data.account_id);
    const createdAtMs = Date.parse(String(data.created_at));
    const owedTo = new Set<string>();
    const numberFor = new Set<string>();
    for (const { prefix, isOn, webhook, showsNumbers } of this.accounts.get(account)?.keys.values() ?? []) {
      if (isOn && webhook && !webhook.isDisabled && createdAtMs >= webhook.setAtMs) owedTo.add(prefix);
      if (showsNumbers) numberFor.add(prefix);
    }
    const status = type === 'TransactionConfirmed' ? 'CONFIRMED' : 'EXTERNAL';
    const known = { id, account, status, createdAtMs, recordedAtMs: atMs, data, owedTo, numberFor } as const;
    this.transactions.set(id, { ...known, withdrawnAtMs: undefined });
  }

  #seeAccount(type: string, data: Data, atMs: number): void {
    const id = Number(data.account_id);
    let account = this.accounts.get(id);
    if (account === undefined) {
      account = { id, isEnabled: false, profiles: new Map(), keys: new Map(), accessChangedAtMs: atMs };
      this.accounts.set(id, account);
    }
    if (type === 'IntegrationEnabled' || type === 'IntegrationDisabled') {
      account.isEnabled = type === 'IntegrationEnabled';
      account.accessChangedAtMs = atMs;
    }
    if (type === 'ChargingProfileSet') {
      const fromMs = Date.parse(String(data.from));
      const toMs = data.to === null ? Number.POSITIVE_INFINITY : Date.parse(String(data.to));
      account.profiles.set(String(data.profile), { fromMs, toMs });
      account.accessChangedAtMs = atMs;
    }
    if (type === 'KeyIssued') {
      account.keys.set(String(data.prefix), {
        prefix: String(data.prefix),
        isOn: true,
        changedAtMs: atMs,
        webhook: undefined,
        showsNumbers: data.driver_mobile === true,
        urls: [],
        warned: [],
        switchedOff: [],
        notices: [],
        enabledAtMs: Number.NEGATIVE_INFINITY,
        endedAtMs: [],
        redeliveries: 0,
      });
    }
    const key = account.keys.get(String(data.prefix));
    if (key !== undefined) seeKey(key, type, data, atMs);
  }
}

function seeKey(key: ModelKey, type: string, data: Data, atMs: number): void {
  const end = (): void => {
    const last = key.urls.at(-1);
    if (last !== undefined) last.untilMs = Math.min(last.untilMs, atMs);
  };
  const evidence = (): Evidence => ({
    atMs,
    failed: Number(data.failed_in_a_row),
    sinceMs: data.failing_since === null ? null : Date.parse(String(data.failing_since)),
  });
  switch (type) {
    case 'KeySwitchedOff':
    case 'KeySwitchedOn':
      key.isOn = type === 'KeySwitchedOn';
      key.changedAtMs = atMs;
      if (!key.isOn) key.endedAtMs.push(atMs);
      break;
    case 'KeyDriverMobileSet':
      key.showsNumbers = data.enabled === true || data.driver_mobile === true;
      break;
    case 'WebhookUrlSet': {
      end();
      const setAtMs = data.set_at === undefined ? atMs : Date.parse(String(data.set_at));
      key.webhook = { url: String(data.url), setAtMs, isDisabled: key.webhook?.isDisabled ?? false };
      key.urls.push({ url: String(data.url), fromMs: atMs, untilMs: Number.POSITIVE_INFINITY });
      break;
    }
    case 'WebhookRemoved':
      end();
      key.webhook = undefined;
      key.endedAtMs.push(atMs);
      break;
    case 'WebhookFailing':
      key.warned.push(evidence());
      key.notices.push({ type, atMs });
      break;
    case 'WebhookDisabled':
      if (key.webhook) key.webhook.isDisabled = true;
      key.endedAtMs.push(atMs);
      key.switchedOff.push(evidence());
      key.notices.push({ type, atMs });
      break;
    case 'WebhookEnabled':
      if (key.webhook) key.webhook.isDisabled = false;
      key.enabledAtMs = atMs;
      key.notices.push({ type, atMs });
      break;
    case 'RedeliveryRequested':
      key.redeliveries += 1;
      break;
    default:
  }
}
