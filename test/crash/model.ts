import { readToEnd } from '../../src/event-store/reads.ts';
import { type RecordedEvent, STREAM_ERASED } from '../../src/event-store/recorded-event.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { expectedRecord } from '../support/transactions/record-oracle.ts';

type Data = Readonly<Record<string, unknown>>;

/** A transaction by its stream. */
export interface Modelled {
  readonly id: number;
  readonly account: number;
  readonly type: string;
  readonly data: Data;
  /** Whether the account's webhook was on, and its key, when this was recorded: then it is owed. */
  readonly isOwed: boolean;
  isVisible: boolean;
}

/** The state by the events, in the order of the log, by separate rules: no projection of the service is used. */
export class Model {
  readonly transactions = new Map<number, Modelled>();
  /** Contradictions in the log. */
  readonly faults: string[] = [];
  /** Accounts whose key is off at the end of the log. */
  readonly #keyOff = new Set<number>();
  readonly #webhookOn = new Set<number>();

  static async read(engines: Engines): Promise<Model> {
    const model = new Model();
    for await (const { events } of readToEnd(engines.store(), { prefixes: [], after: 0 })) {
      for (const event of events) model.#see(event);
    }
    return model;
  }

  /** Newest first, by time and id, as the pull channel lists them. */
  visible(account: number): Modelled[] {
    const isListed = (transaction: Modelled): boolean =>
      transaction.account === account && transaction.isVisible;
    const createdMs = ({ data }: Modelled): number => Date.parse(String(data.created_at));
    return [...this.transactions.values()]
      .filter(isListed)
      .sort((a, b) => createdMs(b) - createdMs(a) || b.id - a.id);
  }

  isKeyOff(account: number): boolean {
    return this.#keyOff.has(account);
  }

  #see({ stream, type, data, metadata }: RecordedEvent): void {
    const id = Number(stream.slice(12));
    if (stream.startsWith('transaction-')) {
      if ((metadata as Data | null)?.recorded_position === undefined)
        this.#seeTransaction(id, type, data as Data);
      else if ('driver' in (data as Data)) this.#redact(id, data as Data);
    }
    if (stream.startsWith('account-')) this.#seeAccount(Number(stream.slice(8)), type);
  }

  /** An engine that can't change the event has recorded it anew. */
  #redact(id: number, data: Data): void {
    const transaction = this.transactions.get(id);
    if (transaction !== undefined) this.transactions.set(id, { ...transaction, data });
  }

  #seeTransaction(id: number, type: string, data: Data): void {
    if (type === STREAM_ERASED) this.transactions.delete(id);
    else if (type === 'TransactionConfirmed' || type === 'ExternalTransactionRecorded') {
      if (this.transactions.has(id)) this.faults.push(`transaction ${id} is recorded twice`);
      const account = Number(data.account_id);
      const isOwed = this.#webhookOn.has(account) && !this.#keyOff.has(account);
      this.transactions.set(id, { id, account, type, data, isOwed, isVisible: true });
    } else {
      const transaction = this.transactions.get(id);
      if (transaction !== undefined) transaction.isVisible = false;
    }
  }

  #seeAccount(account: number, type: string): void {
    if (type === 'KeySwitchedOff') this.#keyOff.add(account);
    if (type === 'KeySwitchedOn') this.#keyOff.delete(account);
    if (type === 'WebhookUrlSet' || type === 'WebhookEnabled') this.#webhookOn.add(account);
    if (type === 'WebhookDisabled') this.#webhookOn.delete(account);
  }
}

export function isRedacted({ data }: Pick<Modelled, 'data'>): boolean {
  return (data.driver as Data).name === 'REDACTED';
}

/** The record as the pull channel prints it, with `expires_at` left out. */
export function recordOf({ type, data }: Modelled): string {
  return expectedRecord(type, { ...data, driver: { ...(data.driver as Data), mobile_number: null } }, '');
}
