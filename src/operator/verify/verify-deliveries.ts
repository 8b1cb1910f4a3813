import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryDecision } from '../../../projections/deliveries.ts';
import { Directory } from '../../../projections/directory.ts';
import type { Clock } from '../../base/clock.ts';
import { accountStream, type Environment } from '../../domain/account-events.ts';
import { isRecordingType, transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { Damage, EventStore, RecordedEvent } from '../../event-store/event-store.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { classify, type DecisionContext, decideAsOf } from '../../push/fan-out/decide-event.ts';
import { deliveryId } from '../../push/message/delivery-id.ts';
import type {
  DeliveryPlace,
  DeliveryQueue,
  DeliveryState,
  LoggedDelivery,
} from '../../push/queue/delivery-queue.ts';
import { IdSet } from './id-set.ts';
import { decideStreams } from './owed-deliveries.ts';
import type { Judge, ProjectedEvent } from './read-log.ts';
import { isInRange, isOfAccount, SETTLE_MS, type VerifyScope } from './scope.ts';

const PART = 500;
const IDS = 10_000;
const PAGE = 1_000;
const DAMAGED = { unreadable: 'an event is damaged' };

export interface DeliveryJudgeOptions extends VerifyScope {
  readonly store: EventStore;
  /** As the store found it: transactions that depend on a damaged event, of them or their account, are not judged. */
  readonly damage?: readonly Damage[] | undefined;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  /** Transactions recorded before this are not judged, whatever the retention: the log knows nothing of them. */
  readonly logStartedAtMs: number;
  readonly settleMs?: number;
  /** Called for each key that a transaction is not owed to. */
  readonly onNotOwed?: ((transactionId: number, key: string, reason: string) => void) | undefined;
}

/** A delivery that is owed. */
export interface OwedDeliveryId {
  readonly id: string;
  readonly prefix: string;
  readonly transactionId: number;
  readonly accountId: number;
}

/** What a transaction is owed: the keys' prefixes by the ids of the deliveries. */
interface OwedOf {
  readonly accountId: number;
  readonly prefixes: Map<string, string>;
}

export interface DeliveryAgreement {
  readonly owed: number;
  /** How many of those owed are in each state in the log. */
  readonly states: Readonly<Record<DeliveryState, number>>;
  /** Owed, but not in the log. */
  readonly missing: readonly OwedDeliveryId[];
  /** In the log, but not owed: also one with the id of an owed one, which is missing then, and another key or account. */
  readonly surplus: readonly LoggedDelivery[];
  /** Why keys of the transactions' accounts are owed nothing, and how often. */
  readonly notOwed: ReadonlyMap<string, number>;
  /** Transactions that can't be judged: recorded too long ago, or an event of them or their account can't be read. */
  readonly notJudged: number;
}

export interface DeliveryFindings extends DeliveryAgreement {
  readonly known: Float64Array;
}

/**
 * Compares the delivery log with what the events call for, as the fan-out decides it, block by block of the log of
 * events: one bulk read of the deliveries for each block. What is missing is looked for once more at the end, after a
 * second, since the fan-out follows the log. At the end the delivery log is searched for transactions that no event
 * calls for. In memory are the ids alone, eight bytes each.
 */
export class DeliveryJudge implements Judge {
  readonly #options: DeliveryJudgeOptions;
  readonly #context: DecisionContext;
  readonly #floorMs: number;
  /** Transactions whose deliveries were judged with a block, or are not to be. */
  readonly #known = new IdSet();
  readonly #states = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
  readonly #notOwed = new Map<string, number>();
  readonly #missing: OwedDeliveryId[] = [];
  readonly #surplus: LoggedDelivery[] = [];
  readonly #damaged: DamagedStreams;
  #owed = 0;
  #notJudged = 0;
  #seen = 0;

  constructor(options: DeliveryJudgeOptions) {
    this.#options = options;
    const { store, clock, environment, retentionMs, logStartedAtMs } = options;
    this.#damaged = new DamagedStreams(options.damage);
    this.#floorMs = Math.max(clock.now() - retentionMs, logStartedAtMs);
    const history = new AccountHistory({ store, directory: new Directory() });
    this.#context = { history, clock, environment, retentionMs };
  }

  /** Transactions judged so far. */
  get seen(): number {
    return this.#seen;
  }

  async judge(block: readonly ProjectedEvent[]): Promise<void> {
    const owedOf = new Map<number, OwedOf>();
    for (const { event, projected } of block) {
      const id = transactionIdOf(event.stream);
      if (id === undefined || !this.#isJudged(event, id)) continue;
      this.#seen += 1;
      // Nearly all events are the first of their stream: a call less for each.
      const isFirst = event.revision === 0 && 'change' in projected;
      const classified = isFirst ? projected : await classify(event, projected, this.#options.store);
      if (!('change' in classified) || classified.change.kind !== 'show') continue;
      this.#known.add(id);
      const { row } = classified.change;
      const decision = this.#isDamaged(id, row.accountId)
        ? DAMAGED
        : await decideAsOf(event, row, this.#context);
      if ('unreadable' in decision) this.#notJudged += 1;
      else owedOf.set(id, { accountId: row.accountId, prefixes: this.#count(id, decision) });
    }
    if (owedOf.size === 0) return;
    for (const delivery of await this.#options.queue.ofTransactions([...owedOf.keys()])) {
      const owed = owedOf.get(delivery.transactionId);
      if (isOwed(delivery, owed)) {
        owed?.prefixes.delete(delivery.id);
        this.#states[delivery.state] += 1;
      } else if (this.#isJudgedDelivery(delivery)) this.#surplus.push(delivery);
    }
    for (const [transactionId, { accountId, prefixes }] of owedOf) {
      for (const [id, prefix] of prefixes) this.#missing.push({ id, prefix, transactionId, accountId });
    }
  }

  /** What it found so far, for another judge to take over: another thread's, which has judged other blocks. */
  findings(): DeliveryFindings {
    const [owed, states, surplus] = [this.#owed, this.#states, this.#surplus];
    const found = { owed, states, missing: this.#missing, surplus };
    return { ...found, notOwed: this.#notOwed, notJudged: this.#notJudged, known: this.#known.values() };
  }

  takeOver({ owed, states, missing, surplus, notOwed, notJudged, known }: DeliveryFindings): void {
    this.#owed += owed;
    for (const [state, count] of Object.entries(states)) this.#states[state as DeliveryState] += count;
    for (const delivery of missing) this.#missing.push(delivery);
    for (const delivery of surplus) this.#surplus.push(delivery);
    for (const [reason, count] of notOwed)
      this.#notOwed.set(reason, (this.#notOwed.get(reason) ?? 0) + count);
    this.#notJudged += notJudged;
    this.#known.addAll(known);
  }

  /** Once the log was read. */
  async finish(): Promise<DeliveryAgreement> {
    for await (const deliveries of this.#unknownDeliveries()) await this.#judgeUnknown(deliveries);
    const missing = await this.#stillMissing();
    const [owed, states, surplus] = [this.#owed, this.#states, this.#surplus];
    return { owed, states, missing, surplus, notOwed: this.#notOwed, notJudged: this.#notJudged };
  }

  #isJudged(event: RecordedEvent, id: number): boolean {
    if (!isRecordingType(event.type) || !isOfAccount(event, this.#options)) return false;
    const atMs = recordedAtMs(event);
    const isAsked = isInRange(atMs, this.#options);
    if (isAsked && atMs >= this.#floorMs) return true;
    if (isAsked) this.#notJudged += 1;
    this.#known.add(id);
    return false;
  }

  #isDamaged(transactionId: number, accountId: number): boolean {
    return this.#damaged.has(transactionStream(transactionId)) || this.#damaged.has(accountStream(accountId));
  }

  #isJudgedDelivery({ transactionId, accountId, recordedAtMs: atMs }: LoggedDelivery): boolean {
    if (this.#isDamaged(transactionId, accountId)) return false;
    if (this.#options.accountId !== undefined && accountId !== this.#options.accountId) return false;
    return atMs >= this.#floorMs && isInRange(atMs, this.#options);
  }

  /** Counts a decision; returns the keys that are owed a delivery, by its id. */
  #count(transactionId: number, { owed, notSent }: DeliveryDecision): Map<string, string> {
    this.#owed += owed.length;
    for (const { key, reason } of notSent) {
      this.#notOwed.set(reason, (this.#notOwed.get(reason) ?? 0) + 1);
      this.#options.onNotOwed?.(transactionId, key, reason);
    }
    return new Map(owed.map(({ prefix }) => [deliveryId(prefix, transactionId), prefix]));
  }

  async #stillMissing(): Promise<OwedDeliveryId[]> {
    if (this.#missing.length === 0) return [];
    await sleep(this.#options.settleMs ?? SETTLE_MS);
    const still: OwedDeliveryId[] = [];
    for (let at = 0; at < this.#missing.length; at += PART) {
      const part = this.#missing.slice(at, at + PART);
      const ids = new Set(part.map(({ transactionId }) => transactionId));
      const logged = await this.#options.queue.ofTransactions([...ids]);
      const byId = new Map(logged.map((delivery) => [delivery.id, delivery]));
      for (const owed of part) {
        const found = byId.get(owed.id);
        if (found === undefined || !hasSameOwner(found, owed)) still.push(owed);
        else this.#states[found.state] += 1;
      }
    }
    return still;
  }

  /** The deliveries that are judged, of transactions that are not known. */
  async *#unknownDeliveries(): AsyncGenerator<readonly LoggedDelivery[]> {
    const { queue, accountId, sinceMs } = this.#options;
    if (accountId !== undefined || sinceMs !== undefined) {
      for await (const page of pagesOf(queue, { accountId, sinceMs })) {
        yield page.filter((each) => !this.#known.has(each.transactionId) && this.#isJudgedDelivery(each));
      }
      return;
    }
    let after = -1;
    for (;;) {
      const ids = await queue.transactionsAfter(after, IDS);
      if (ids.length === 0) return;
      after = ids.at(-1) ?? after;
      const unknown = ids.filter((id) => !this.#known.has(id));
      for (let at = 0; at < unknown.length; at += PART) {
        const deliveries = await queue.ofTransactions(unknown.slice(at, at + PART));
        yield deliveries.filter((delivery) => this.#isJudgedDelivery(delivery));
      }
    }
  }

  /**
   * Deliveries of transactions that were recorded since the log was read are right if those are owed, and all those of
   * a transaction that was erased since.
   */
  async #judgeUnknown(deliveries: readonly LoggedDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const { store } = this.#options;
    const byTransaction = Map.groupBy(deliveries, ({ transactionId }) => transactionId);
    const decided = decideStreams([...byTransaction.keys()], { store, ...this.#context });
    for await (const { transactionId, decision } of decided) {
      if (decision === 'erased' || decision === 'unreadable') continue;
      const owed = new Map(decision.map((delivery) => [delivery.id, delivery]));
      for (const delivery of byTransaction.get(transactionId) ?? []) {
        const found = owed.get(delivery.id);
        if (found === undefined || !hasSameOwner(delivery, found)) this.#surplus.push(delivery);
      }
    }
  }
}

/** One with the id of an owed one, but of another key or account, is another one: it was changed in the store. */
function isOwed({ id, prefix, accountId }: LoggedDelivery, owed: OwedOf | undefined): boolean {
  return owed?.prefixes.get(id) === prefix && owed.accountId === accountId;
}

/** Whether both are of the same key of the same account. */
export function hasSameOwner(
  a: Pick<LoggedDelivery, 'prefix' | 'accountId'>,
  b: Pick<LoggedDelivery, 'prefix' | 'accountId'>,
): boolean {
  return a.prefix === b.prefix && a.accountId === b.accountId;
}

async function* pagesOf(
  queue: DeliveryQueue,
  filter: Pick<VerifyScope, 'accountId' | 'sinceMs'>,
): AsyncGenerator<readonly LoggedDelivery[]> {
  let after: DeliveryPlace | undefined;
  do {
    const { deliveries, next } = await queue.page(filter, { limit: PAGE, after });
    yield deliveries;
    after = next;
  } while (after !== undefined);
}
