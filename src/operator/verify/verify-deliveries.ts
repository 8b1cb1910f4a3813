import type { DeliveryDecision } from '../../../projections/deliveries.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import { Directory } from '../../accounts/directory/fold/directory.ts';
import type { Clock } from '../../base/clock.ts';
import { accountStream, type Environment } from '../../domain/account-events.ts';
import { isRecordingType, transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { isRewritten, occurredAtMs } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { type DecisionContext, decideAsOf } from '../../push/fan-out/decide-event.ts';
import { deliveryId } from '../../push/message/envelope.ts';
import { DELIVERY_STATES, type DeliveryState, type DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryPlace, DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { judgeEvent } from '../../records/project-event.ts';
import { IdSet } from './id-set.ts';
import { type Comparison, type Side, SideJudge, type SideOptions } from './judge.ts';
import { decideStreams } from './owed-deliveries.ts';
import { isInRange, isOfAccount, type ProjectedEvent, type VerifyScope } from './read-log.ts';

const IDS = 5_000;
const PAGE = 1_000;
const DAMAGED = { unreadable: 'an event is damaged' };

export interface DeliverySideOptions extends SideOptions {
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  /** When the log began. Transactions recorded before it are not judged, whatever the retention. */
  readonly logStartedAtMs: number;
  /** Called for each key to which no delivery of a transaction is owed. */
  readonly onNotOwed?: ((transactionId: number, key: string, reason: string) => void) | undefined;
}

type States = Record<DeliveryState, number>;

/** A delivery that is owed. */
export interface OwedDeliveryId {
  readonly id: string;
  readonly prefix: string;
  readonly transactionId: number;
  readonly accountId: number;
}

export interface DeliveryAgreement {
  readonly owed: number;
  /** How many of the owed deliveries are in each state in the log. */
  readonly states: Readonly<States>;
  /** Deliveries that are owed but not in the log. */
  readonly missing: readonly OwedDeliveryId[];
  /** Deliveries in the log that are not owed, including one with the id of an owed one but another key or account. */
  readonly surplus: readonly DeliverySummary[];
  /** The reasons why keys are owed nothing, and how often each applies. */
  readonly notOwed: ReadonlyMap<string, number>;
  /** The number of transactions that were recorded too long ago, or that have an event or account that can't be read. */
  readonly notJudged: number;
}

/**
 * Compares the delivery log with what the events call for, as the fan-out decides it. Each block takes one bulk read of
 * deliveries. Transactions that have been erased, or can't be read any more, are left out.
 */
export function deliveryJudge(options: DeliverySideOptions): SideJudge<DeliveryAgreement> {
  return new SideJudge(new DeliverySide(options), options);
}

class DeliverySide implements Side<DeliveryAgreement> {
  /** The transactions whose deliveries were judged with a block, or must not be judged. */
  readonly known = new IdSet();
  readonly #options: DeliverySideOptions;
  readonly #context: DecisionContext;
  readonly #floorMs: number;
  readonly #states = Object.fromEntries(DELIVERY_STATES.map((state) => [state, 0])) as States;
  readonly #notOwed = new Map<string, number>();
  readonly #damaged: DamagedStreams;
  #owed = 0;
  #notJudged = 0;

  constructor(options: DeliverySideOptions) {
    this.#options = options;
    const { store, clock, environment, retentionMs, logStartedAtMs } = options;
    this.#damaged = new DamagedStreams(options.damage);
    const nowMs = clock.now(); // one moment for all decisions, however long the log is read
    this.#floorMs = Math.max(nowMs - retentionMs, logStartedAtMs);
    const history = new AccountHistory({ store, directory: new Directory() });
    this.#context = { history, clock: { now: () => nowMs }, environment, retentionMs };
  }

  async begin(block: readonly ProjectedEvent[]): Promise<Comparison> {
    const owedOf = new Map<number, readonly OwedDeliveryId[]>();
    for (const { event, projected } of block) {
      const id = transactionIdOf(event.stream);
      if (id === undefined || (isRewritten(event) && this.known.has(id))) continue;
      if (!this.#isJudged(event, id)) continue;
      // Nearly all events are the first of their stream, which then need not be read.
      const judged =
        event.revision === 0
          ? projected
          : judgeEvent(event, await this.#options.store.readStream(event.stream));
      if (judged === undefined || 'parkReason' in judged || judged.change.kind !== 'show') continue;
      this.known.add(id);
      const { row } = judged.change;
      const decision = this.#isDamaged(id, row.accountId)
        ? DAMAGED
        : await decideAsOf(event, row, this.#context);
      if ('unreadable' in decision) this.#notJudged += 1;
      else owedOf.set(id, this.#count(row, decision));
    }
    return () => this.#compareAll(owedOf);
  }

  async #compareAll(owedOf: ReadonlyMap<number, readonly OwedDeliveryId[]>): Promise<readonly number[]> {
    if (owedOf.size === 0) return [];
    const logged = await this.#logged([...owedOf.keys()]);
    const differing: number[] = [];
    for (const [id, owed] of owedOf) {
      const { found, missing, surplus } = this.#compare(owed, logged.get(id));
      if (missing.length + surplus.length > 0) differing.push(id);
      else for (const { state } of found) this.#states[state] += 1;
    }
    return differing;
  }

  async settle(parts: AsyncGenerator<readonly number[]>): Promise<DeliveryAgreement> {
    const { store } = this.#options;
    const differing: { missing: OwedDeliveryId[]; surplus: DeliverySummary[] } = { missing: [], surplus: [] };
    for await (const part of parts) {
      const logged = await this.#logged(part);
      for await (const { transactionId: id, decision } of decideStreams(part, { store, ...this.#context })) {
        if (decision === 'erased' || decision === 'unreadable') continue;
        const { found, missing, surplus } = this.#compare(decision, logged.get(id));
        for (const delivery of surplus) differing.surplus.push(delivery);
        if (!this.known.has(id)) continue; // it was recorded after the log was read
        for (const { id: delivery, prefix, accountId } of missing)
          differing.missing.push({ id: delivery, prefix, transactionId: id, accountId });
        for (const { state } of found) this.#states[state] += 1;
      }
    }
    const counts = { owed: this.#owed, notOwed: this.#notOwed, notJudged: this.#notJudged };
    return { ...counts, states: this.#states, ...differing };
  }

  #isJudged(event: RecordedEvent, id: number): boolean {
    if (!isRecordingType(event.type) || !isOfAccount(event, this.#options)) return false;
    const atMs = occurredAtMs(event);
    const isAsked = isInRange(atMs, this.#options);
    if (isAsked && atMs >= this.#floorMs) return true;
    if (isAsked) this.#notJudged += 1;
    this.known.add(id);
    return false;
  }

  #isDamaged(transactionId: number, accountId: number): boolean {
    return this.#damaged.has(transactionStream(transactionId)) || this.#damaged.has(accountStream(accountId));
  }

  #isJudgedDelivery({ transactionId, accountId, occurredAtMs: atMs }: DeliverySummary): boolean {
    if (this.#isDamaged(transactionId, accountId)) return false;
    if (this.#options.accountId !== undefined && accountId !== this.#options.accountId) return false;
    return atMs >= this.#floorMs && isInRange(atMs, this.#options);
  }

  /** Counts a decision, and returns the deliveries that are owed. */
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

  async #logged(transactionIds: readonly number[]): Promise<ReadonlyMap<number, DeliverySummary[]>> {
    const { deliveries } = await this.#options.queue.page({ transactionIds }, { limit: Infinity });
    return Map.groupBy(deliveries, ({ transactionId }) => transactionId);
  }

  /** Compares what is owed of a transaction with what the log has of it. */
  #compare(owed: readonly OwedDeliveryId[], logged: readonly DeliverySummary[] = []) {
    const isExact = owed.length === logged.length && logged.every((each, at) => isSame(each, owed[at]));
    if (isExact) return { found: logged, missing: [], surplus: [] }; // nearly always
    const isOwed = (delivery: DeliverySummary): boolean => owed.some((each) => isSame(each, delivery));
    return {
      found: logged.filter(isOwed),
      missing: owed.filter((each) => !logged.some((delivery) => isSame(each, delivery))),
      surplus: logged.filter((delivery) => !isOwed(delivery) && this.#isJudgedDelivery(delivery)),
    };
  }

  /** Yields the transactions with deliveries that may be judged. */
  async *stored(): AsyncGenerator<readonly number[]> {
    const { queue, accountId, sinceMs } = this.#options;
    if (accountId === undefined && sinceMs === undefined) {
      // This reads an index. Reading all rows would take a quarter of the time of a whole verification.
      let ids = await queue.transactionsAfter(-1, IDS);
      for (; ids.length > 0; ids = await queue.transactionsAfter(ids.at(-1) ?? 0, IDS)) yield ids;
      return;
    }
    for await (const page of pagesOf(queue, { accountId, sinceMs }))
      yield page.filter((each) => this.#isJudgedDelivery(each)).map((each) => each.transactionId);
  }
}

/** True for the same delivery. One with the same id but another key or account was changed in the store. */
export function isSame(
  a: Omit<OwedDeliveryId, 'transactionId'>,
  b: Omit<OwedDeliveryId, 'transactionId'> | undefined,
): boolean {
  return a.id === b?.id && a.prefix === b.prefix && a.accountId === b.accountId;
}

async function* pagesOf(
  queue: DeliveryQueue,
  filter: Pick<VerifyScope, 'accountId' | 'sinceMs'>,
): AsyncGenerator<readonly DeliverySummary[]> {
  let after: DeliveryPlace | undefined;
  do {
    const { deliveries, next } = await queue.page(filter, { limit: PAGE, after });
    yield deliveries;
    after = next;
  } while (after !== undefined);
}
