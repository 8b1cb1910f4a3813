import { isPastRetention } from '../../../projections/deliveries.ts';
import { redactedRecord } from '../../../projections/record.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Environment } from '../../domain/account-events.ts';
import { batchesOf, jsonBytes } from '../../event-store/batch-bytes.ts';
import { isRewritten, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore, GroupEvent } from '../../event-store/event-store.ts';
import { timeForAges } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { judgeEvent } from '../../records/project-event.ts';
import { noteCommand } from '../delivery-spans.ts';
import type { NewDelivery } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import type { AccountHistory, UnreadableAccount } from './account-history.ts';
import { decideAsOf, newDelivery, placeOf } from './decide-event.ts';
import { RedactedDrivers } from './redacted-drivers.ts';

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** The most deliveries that are stored at once. */
const MAX_ACCEPTED = 1_000;
const ACCEPTED = { maxItems: MAX_ACCEPTED, bytesOf: ({ record }: NewDelivery) => jsonBytes(record) };

export interface FanOutOptions {
  readonly store: EventStore;
  readonly queue: Pick<DeliveryQueue, 'change'>;
  readonly history: AccountHistory;
  /** Stores deliveries durably, and may start their first attempts at once. */
  readonly accept: (deliveries: readonly NewDelivery[]) => Promise<void>;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
}

/** How an event is answered to its group. */
export type FanOutResult =
  | { readonly kind: 'ack'; readonly event: GroupEvent }
  /** The account can't be read: its deliveries wait until the operator has repaired that. */
  | { readonly kind: 'retry'; readonly event: GroupEvent; readonly reason: string; readonly delayMs: number }
  /** The event can't be read, or does not fit into its stream. */
  | { readonly kind: 'park'; readonly event: GroupEvent; readonly reason: string };

/** Turns transaction events into deliveries and withdrawals. Handling an event again changes nothing. */
export class FanOut {
  readonly #options: FanOutOptions;
  readonly #redacted: RedactedDrivers;

  constructor(options: FanOutOptions) {
    this.#options = options;
    this.#redacted = new RedactedDrivers(options.store);
  }

  /**
   * Handles events together, in any order. Their deliveries and withdrawals are stored when this resolves, withdrawals
   * first, so that nothing is sent that is known to be voided. Rejects as a store does; then the same events can be given
   * again.
   */
  async handle(events: readonly GroupEvent[]): Promise<FanOutResult[]> {
    const results: FanOutResult[] = [];
    const shown: { event: GroupEvent; row: TransactionRow }[] = [];
    const withdrawn: number[] = [];
    const { store, queue, clock, retentionMs } = this.#options;
    await this.#redacted.look();
    const later = events.flatMap(({ event: { revision, stream } }) => (revision > 0 ? [stream] : []));
    const read = later.length === 0 ? [] : await store.readStreams(later);
    const histories = new Map(later.map((stream, index) => [stream, read[index] ?? []]));
    for (const event of events) {
      if (isRewritten(event.event)) {
        results.push({ kind: 'ack', event }); // it replaces an event that was fanned out
        continue;
      }
      const history = histories.get(event.event.stream) ?? [];
      const judged = judgeEvent(event.event, history);
      if (judged === undefined) results.push({ kind: 'ack', event });
      else if ('parkReason' in judged) results.push({ kind: 'park', event, reason: judged.parkReason });
      else if (judged.change.kind === 'show') {
        const { row } = judged.change;
        shown.push({ event, row: this.#redacted.has(event.event) ? redacted(row) : row });
      } else {
        withdrawn.push(judged.change.id);
        results.push({ kind: 'ack', event });
      }
    }
    if (withdrawn.length > 0)
      await queue.change({ kind: 'withdraw', transactionIds: withdrawn }, clock.now());
    const isPast = (event: RecordedEvent, nowMs: number): boolean =>
      isPastRetention(occurredAtMs(event), { retentionMs, nowMs });
    // A clock that is ahead must not drop deliveries.
    const seemsOld = shown.some(({ event }) => isPast(event.event, clock.now()));
    const agesMs = seemsOld ? await timeForAges(store, clock) : clock.now();
    const { past = [], kept = [] } = Object.groupBy(shown, ({ event }) =>
      isPast(event.event, agesMs) ? 'past' : 'kept',
    );
    for (const { event } of past) results.push({ kind: 'ack', event });
    await this.#options.history.look(kept.map(({ event, row }) => placeOf(event.event, row)));
    const deliveries: NewDelivery[] = [];
    for (const { event, row } of kept) {
      const owed = await this.#owedBy(event.event, row, agesMs);
      if ('unreadable' in owed) {
        results.push(waitFor(event, owed.unreadable));
        continue;
      }
      for (const delivery of owed) deliveries.push(delivery);
      results.push({ kind: 'ack', event });
      // Nearly always one batch: an event owes one delivery for each key.
      if (deliveries.length >= MAX_ACCEPTED) await this.#accept(deliveries.splice(0));
    }
    await this.#accept(deliveries);
    return results;
  }

  async #accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (const some of batchesOf(deliveries, ACCEPTED)) await this.#options.accept(some);
  }

  async #owedBy(
    event: RecordedEvent,
    row: TransactionRow,
    agesMs: number,
  ): Promise<readonly NewDelivery[] | UnreadableAccount> {
    const { clock, ...context } = this.#options;
    const decided = await decideAsOf(event, row, { ...context, clock: { now: () => agesMs } });
    if ('unreadable' in decided) return decided;
    const nowMs = clock.now();
    return decided.owed.map((owed) => {
      const delivery = newDelivery({ event, row, owed, nowMs });
      noteCommand(delivery.id, event);
      return delivery;
    });
  }
}

function redacted(row: TransactionRow): TransactionRow {
  return { ...row, record: redactedRecord(row.record) };
}

function waitFor(event: GroupEvent, reason: string): FanOutResult {
  const delayMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(event.retryCount, 10), MAX_WAIT_MS);
  return { kind: 'retry', event, reason, delayMs };
}
