import type { DeliveryDecision } from '../../../projections/deliveries.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import { SerialWork } from '../../base/serial-work.ts';
import { accountStream, type Environment } from '../../domain/account-events.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { isDamaged, type RecordedEvent } from '../../event-store/recorded-event.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { type DecisionContext, decideAsOf } from '../../push/fan-out/decide-event.ts';
import { deliveryId } from '../../push/message/envelope.ts';
import { DELIVERY_STATES, type DeliveryState, type DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryPlace, DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { TransactionFold } from '../../records/project-event.ts';
import { type ReadUp, type Side, type TransactionStream, wholeStreams } from './compare-log.ts';
import { IdSet } from './id-set.ts';
import { isInRange, isInScope, type VerifyScope } from './read-log.ts';

const IDS = 5_000;
const PAGE = 1_000;

export interface DeliverySideOptions extends VerifyScope {
  readonly store: EventStore;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  /** The time at which the log began. Transactions recorded before it are not judged, whatever the retention. */
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

/** The deliveries that are owed of a transaction, and the reasons that are counted for those that are not. */
interface Decided {
  readonly owed: readonly OwedDeliveryId[];
  readonly notSent: DeliveryDecision['notSent'];
  readonly isTooOld?: boolean;
}

const NOTHING: Decided = { owed: [], notSent: [] };

/**
 * Compares the delivery log with what the events call for, as the fan-out decides it. Transactions that have been erased are left
 * out, and so are those that can't be read any more, with what they depend on.
 */
export class DeliverySide implements Side {
  /** The transactions that were counted. */
  readonly #counted = new IdSet();
  readonly #options: DeliverySideOptions;
  readonly #context: DecisionContext;
  readonly #floorMs: number;
  /** The history of an account is folded up to each event in turn, so blocks are decided one after the other. */
  readonly #deciding = new SerialWork();
  readonly #states = Object.fromEntries(DELIVERY_STATES.map((state) => [state, 0])) as States;
  readonly #notOwed = new Map<string, number>();
  readonly #missing: OwedDeliveryId[] = [];
  readonly #surplus: DeliverySummary[] = [];
  #damaged = new DamagedStreams();
  #owed = 0;
  #notJudged = 0;

  constructor(options: DeliverySideOptions) {
    this.#options = options;
    const { store, clock, environment, retentionMs, logStartedAtMs } = options;
    const nowMs = clock.now(); // one moment for all decisions, however long the log is read
    this.#floorMs = Math.max(nowMs - retentionMs, logStartedAtMs);
    const history = new AccountHistory({ store });
    this.#context = { history, clock: { now: () => nowMs }, environment, retentionMs };
  }

  /** The result, once all deliveries are compared. */
  get agreement(): DeliveryAgreement {
    const differing = { missing: this.#missing, surplus: this.#surplus };
    const counts = { owed: this.#owed, notOwed: this.#notOwed, notJudged: this.#notJudged };
    return { ...counts, states: this.#states, ...differing };
  }

  async find(ids: readonly number[]) {
    const logged = await this.#logged(ids);
    return (streams: readonly TransactionStream[]) =>
      this.#deciding.run(async () => {
        const differing: number[] = [];
        for (const stream of streams) {
          const { id } = stream;
          if (this.#counted.has(id)) continue;
          const decided = await this.#decide(stream);
          if (decided === 'unreadable') {
            differing.push(id);
            continue;
          }
          const { found, missing, surplus } = this.#compare(decided.owed, logged.get(id));
          if (missing.length + surplus.length > 0) differing.push(id);
          else this.#count(id, decided, found);
        }
        return differing;
      });
  }

  async settle(parts: AsyncIterable<readonly number[]>, { known, damaged }: ReadUp): Promise<void> {
    this.#damaged = damaged;
    for await (const part of parts) {
      const logged = await this.#logged(part);
      for (const stream of await wholeStreams(this.#options.store, part)) {
        if (!this.#counted.has(stream.id)) await this.#settleOne(stream, logged.get(stream.id), known);
      }
    }
  }

  async #settleOne(
    stream: TransactionStream,
    logged: readonly DeliverySummary[] | undefined,
    known: ReadUp['known'],
  ): Promise<void> {
    const { id, events } = stream;
    if (events.length === 0 && (await this.#options.store.isErased(transactionStream(id)))) return;
    const decided = await this.#decide(stream);
    if (decided === 'unreadable' || this.#isDamaged(id, decided.owed[0]?.accountId)) {
      if (events.some(({ event }) => isInScope(event, this.#options))) this.#notJudged += 1;
      return;
    }
    const { found, missing, surplus } = this.#compare(decided.owed, logged);
    for (const each of surplus) this.#surplus.push(each);
    if (!known.has(id)) return; // it was recorded after the log was read
    for (const each of missing) this.#missing.push(each);
    this.#count(id, decided, found);
  }

  /** Decides what is owed of a transaction. It is not decided for one that is too old or not asked for. */
  async #decide(stream: TransactionStream): Promise<Decided | 'unreadable'> {
    const recording = recordingIn(stream);
    if (recording === 'unreadable') return recording;
    if (recording === undefined || !isInScope(recording.event, this.#options)) return NOTHING;
    const { event, row } = recording;
    if (occurredAtMs(event) < this.#floorMs) return { ...NOTHING, isTooOld: true };
    const decision = await decideAsOf(event, row, this.#context);
    if ('unreadable' in decision) return 'unreadable';
    const owed = decision.owed.map(({ prefix }) => ({
      id: deliveryId(prefix, row.id),
      prefix,
      transactionId: row.id,
      accountId: row.accountId,
    }));
    return { owed, notSent: decision.notSent };
  }

  /** Counts a transaction, of which the log has the deliveries that were found. */
  #count(id: number, { owed, notSent, isTooOld }: Decided, found: readonly DeliverySummary[]): void {
    this.#counted.add(id);
    this.#owed += owed.length;
    if (isTooOld) this.#notJudged += 1;
    for (const { state } of found) this.#states[state] += 1;
    for (const { key, reason } of notSent) {
      this.#notOwed.set(reason, (this.#notOwed.get(reason) ?? 0) + 1);
      this.#options.onNotOwed?.(id, key, reason);
    }
  }

  #isDamaged(transactionId: number, accountId: number | undefined): boolean {
    if (this.#damaged.has(transactionStream(transactionId))) return true;
    return accountId !== undefined && this.#damaged.has(accountStream(accountId));
  }

  #isJudgedDelivery({ transactionId, accountId, occurredAtMs: atMs }: DeliverySummary): boolean {
    if (this.#isDamaged(transactionId, accountId)) return false;
    if (this.#options.accountId !== undefined && accountId !== this.#options.accountId) return false;
    return atMs >= this.#floorMs && isInRange(atMs, this.#options);
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

/**
 * Returns the event that recorded a transaction, with the row that it made; `undefined` if there is none, and `unreadable` if it
 * may be one that can't be read, or if a damaged one may have voided it.
 */
export function recordingIn({
  events,
}: TransactionStream):
  | { readonly event: RecordedEvent; readonly row: TransactionRow }
  | 'unreadable'
  | undefined {
  if (events.some(({ event }) => isDamaged(event))) return 'unreadable';
  const fold = new TransactionFold();
  for (const { event, projected } of events) {
    if (fold.apply(projected).kind === 'shown' && fold.row?.shown != null)
      return { event, row: fold.row.shown };
  }
  return events.some(({ projected }) => 'parkReason' in projected) ? 'unreadable' : undefined;
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
