import type { DeliveryDecision } from '../../../projections/deliveries.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import { Directory } from '../../accounts/directory/fold/directory.ts';
import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import { accountStream, type Environment } from '../../domain/account-events.ts';
import { isRecordingType, transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { isRewritten, recordedAtMs } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { classify, type DecisionContext, decideAsOf } from '../../push/fan-out/decide-event.ts';
import { deliveryId } from '../../push/message/envelope.ts';
import type { DeliveryState } from '../../push/queue/delivery.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import type { DeliveryPlace, LoggedDelivery } from '../../push/queue/delivery-reads.ts';
import { IdSet } from './id-set.ts';
import { decideStreams } from './owed-deliveries.ts';
import {
  isInRange,
  isOfAccount,
  type Judge,
  type ProjectedEvent,
  SETTLE_MS,
  type VerifyScope,
} from './read-log.ts';

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

export interface DeliveryFindings extends Omit<DeliveryAgreement, 'missing' | 'surplus'> {
  readonly known: Float64Array;
  readonly suspects: readonly number[];
}

/**
 * Compares the delivery log with what the events call for, as the fan-out decides it, block by block of the log of
 * events: one bulk read of the deliveries for each block. At the end the delivery log is searched for transactions that
 * no event calls for; after a second, since the fan-out follows the log, these and those that differed are compared once
 * more, by their streams. In memory are the ids alone, eight bytes each.
 */
export class DeliveryJudge implements Judge {
  readonly #options: DeliveryJudgeOptions;
  readonly #context: DecisionContext;
  readonly #floorMs: number;
  /** Transactions whose deliveries were judged with a block, or are not to be. */
  readonly #known = new IdSet();
  readonly #suspects = new Set<number>();
  readonly #states = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
  readonly #notOwed = new Map<string, number>();
  readonly #damaged: DamagedStreams;
  #owed = 0;
  #notJudged = 0;

  constructor(options: DeliveryJudgeOptions) {
    this.#options = options;
    const { store, clock, environment, retentionMs, logStartedAtMs } = options;
    this.#damaged = new DamagedStreams(options.damage);
    const nowMs = clock.now(); // one moment for all decisions, however long the log is read
    this.#floorMs = Math.max(nowMs - retentionMs, logStartedAtMs);
    const history = new AccountHistory({ store, directory: new Directory() });
    this.#context = { history, clock: { now: () => nowMs }, environment, retentionMs };
  }

  async judge(block: readonly ProjectedEvent[]): Promise<void> {
    const owedOf = new Map<number, readonly OwedDeliveryId[]>();
    for (const { event, projected } of block) {
      const id = transactionIdOf(event.stream);
      if (id === undefined || (isRewritten(event) && this.#known.has(id))) continue;
      if (!this.#isJudged(event, id)) continue;
      // Nearly all events are the first of their stream: a call less for each.
      const isFirst = event.revision === 0 && 'change' in projected;
      const classified = isFirst
        ? projected
        : classify(event, projected, await this.#options.store.readStream(event.stream));
      if (!('change' in classified) || classified.change.kind !== 'show') continue;
      this.#known.add(id);
      const { row } = classified.change;
      const decision = this.#isDamaged(id, row.accountId)
        ? DAMAGED
        : await decideAsOf(event, row, this.#context);
      if ('unreadable' in decision) this.#notJudged += 1;
      else owedOf.set(id, this.#count(row, decision));
    }
    if (owedOf.size === 0) return;
    const logged = await this.#logged([...owedOf.keys()]);
    for (const [id, owed] of owedOf) {
      const { found, missing, surplus } = this.#compare(owed, logged.get(id));
      if (missing.length + surplus.length > 0) this.#suspects.add(id);
      else for (const { state } of found) this.#states[state] += 1;
    }
  }

  /** What it found so far, for another judge to take over: another thread's, which has judged other blocks. */
  findings(): DeliveryFindings {
    const { owed, states, notOwed, notJudged } = this.#counts();
    return { owed, states, notOwed, notJudged, known: this.#known.values(), suspects: [...this.#suspects] };
  }

  takeOver({ owed, states, notOwed, notJudged, known, suspects }: DeliveryFindings): void {
    this.#owed += owed;
    for (const [state, count] of Object.entries(states)) this.#states[state as DeliveryState] += count;
    for (const [reason, count] of notOwed)
      this.#notOwed.set(reason, (this.#notOwed.get(reason) ?? 0) + count);
    this.#notJudged += notJudged;
    this.#known.addAll(known);
    for (const id of suspects) this.#suspects.add(id);
  }

  /** Once the log was read. Transactions that were erased since, or can't be read any more, are left out. */
  async finish(): Promise<DeliveryAgreement> {
    const { store, settleMs } = this.#options;
    for await (const ids of this.#unknownTransactions()) for (const id of ids) this.#suspects.add(id);
    if (this.#suspects.size > 0) await world.sleep(settleMs ?? SETTLE_MS);
    const differing: { missing: OwedDeliveryId[]; surplus: LoggedDelivery[] } = { missing: [], surplus: [] };
    const suspects = [...this.#suspects];
    for (let at = 0; at < suspects.length; at += PART) {
      const part = suspects.slice(at, at + PART);
      const logged = await this.#logged(part);
      for await (const { transactionId: id, decision } of decideStreams(part, { store, ...this.#context })) {
        if (decision === 'erased' || decision === 'unreadable') continue;
        const { found, missing, surplus } = this.#compare(decision, logged.get(id));
        for (const delivery of surplus) differing.surplus.push(delivery);
        if (!this.#known.has(id)) continue; // it was recorded since the log was read
        for (const { id: delivery, prefix, accountId } of missing)
          differing.missing.push({ id: delivery, prefix, transactionId: id, accountId });
        for (const { state } of found) this.#states[state] += 1;
      }
    }
    return { ...this.#counts(), ...differing };
  }

  #counts() {
    return {
      owed: this.#owed,
      states: this.#states,
      notOwed: this.#notOwed,
      notJudged: this.#notJudged,
    };
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

  /** Counts a decision; returns the deliveries that are owed. */
  #count({ id: transactionId, accountId }: TransactionRow, decision: DeliveryDecision): OwedDeliveryId[] {
    const { owed, notSent } = decision;
    this.#owed += owed.length;
    for (const { key, reason } of notSent) {
      this.#notOwed.set(reason, (this.#notOwed.get(reason) ?? 0) + 1);
      this.#options.onNotOwed?.(transactionId, key, reason);
    }
    return owed.map(({ prefix }) => ({
      id: deliveryId(prefix, transactionId),
      ...{ prefix, transactionId, accountId },
    }));
  }

  async #logged(transactionIds: readonly number[]): Promise<ReadonlyMap<number, LoggedDelivery[]>> {
    const logged = await this.#options.queue.ofTransactions(transactionIds);
    return Map.groupBy(logged, ({ transactionId }) => transactionId);
  }

  /** What one transaction is owed with what the log has of it. */
  #compare(owed: readonly OwedDeliveryId[], logged: readonly LoggedDelivery[] = []) {
    const isOwed = (delivery: LoggedDelivery): boolean => owed.some((each) => isSame(each, delivery));
    return {
      found: logged.filter(isOwed),
      missing: owed.filter((each) => !logged.some((delivery) => isSame(each, delivery))),
      surplus: logged.filter((delivery) => !isOwed(delivery) && this.#isJudgedDelivery(delivery)),
    };
  }

  /** Those with deliveries that may be judged. */
  async *#unknownTransactions(): AsyncGenerator<readonly number[]> {
    const { queue, accountId, sinceMs } = this.#options;
    if (accountId !== undefined || sinceMs !== undefined) {
      for await (const page of pagesOf(queue, { accountId, sinceMs })) {
        const ids = page.filter((each) => this.#isJudgedDelivery(each)).map((each) => each.transactionId);
        yield ids.filter((id) => !this.#known.has(id));
      }
      return;
    }
    let ids = await queue.transactionsAfter(-1, IDS);
    for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
      yield ids.filter((id) => !this.#known.has(id));
      ids = await queue.transactionsAfter(last, IDS);
    }
  }
}

/** One with the id of an owed one, but of another key or account, is another one: it was changed in the store. */
export function isSame(
  a: Omit<OwedDeliveryId, 'transactionId'>,
  b: Omit<OwedDeliveryId, 'transactionId'>,
): boolean {
  return a.id === b.id && a.prefix === b.prefix && a.accountId === b.accountId;
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
