import { type AccountWriter, changeAccount, decideOnAccount } from '../../accounts/change-account.ts';
import { FuelError } from '../../base/errors.ts';
import { world } from '../../base/world.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import type { Redeliverable } from '../../domain/account-events.ts';
import { isWithdrawalType, transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import { isDamaged, Unreadable } from '../../event-store/recorded-event.ts';
import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryPlace, DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { redeliveryRefusal } from '../../push/queue/next-state.ts';

/** Due times are spread like this, so that redelivered deliveries leave a receiver capacity for live ones. */
export const REDELIVERED_PER_SECOND = 50;

const PAGE = 500;

export interface RedeliverOptions {
  readonly writer: AccountWriter;
  readonly queue: DeliveryQueue;
  readonly onRefused: (what: string, reason: string) => void;
  readonly onProgress: (counts: RedeliverCounts) => void;
  /** Ends the work between two pages; the same command, given again, continues with the rest. */
  readonly signal: AbortSignal;
}

export interface RedeliverCounts {
  readonly redelivered: number;
  /** Pending already: for the first time, or because the same command was given before. */
  readonly unchanged: number;
  readonly refused: number;
  /** Of those of a key: never sent again, since their transactions were voided, cancelled or erased, or they were removed. */
  readonly left_out?: number;
}

type RequestRedelivery = Extract<AccountCommand, { readonly type: 'RequestRedelivery' }>;

/**
 * Redelivers the deliveries with these ids: failed ones, with `force` delivered ones too. One that is refused is
 * reported with the reason, and the others are redelivered all the same. The request is recorded in the streams of
 * the accounts first.
 */
export async function redeliverByIds(
  ids: readonly string[],
  force: boolean,
  options: RedeliverOptions,
): Promise<RedeliverCounts> {
  const redelivery = new Redelivery(options, { force });
  const known: DeliverySummary[] = [];
  for (const id of new Set(ids)) {
    const delivery = await options.queue.find(id);
    if (delivery === undefined) redelivery.refuse(id, 'there is no such delivery: fuel delivery list');
    else known.push(delivery);
  }
  for (const ofKey of Map.groupBy(known, ({ prefix }) => prefix).values()) {
    const eligible = await redelivery.eligible(ofKey);
    if (eligible.length === 0) continue;
    if (await redelivery.record(eligible)) await redelivery.makeDue(eligible);
  }
  return redelivery.counts;
}

/** Deliveries of one key that were created in the given time. */
export interface KeyRedelivery
  extends Pick<RequestRedelivery, 'accountId' | 'prefix' | 'sinceMs' | 'untilMs'> {
  readonly which: Redeliverable;
}

/** Ends what of the key's redelivered deliveries is still to be sent, as failed; says how many. Throws `REFUSED`. */
export async function cancelRedelivery(
  of: Pick<KeyRedelivery, 'accountId' | 'prefix'> & { readonly reason: string | undefined },
  { writer, queue }: Pick<RedeliverOptions, 'writer' | 'queue'>,
): Promise<number> {
  await changeAccount(writer, of.accountId, [{ type: 'CancelRedelivery', ...of }]);
  const reason = 'the redelivery was cancelled';
  return queue.change({ kind: 'end lane', prefix: of.prefix, reason, redelivered: true }, writer.clock.now());
}

function requestOf({ accountId, prefix, sinceMs, untilMs, which }: KeyRedelivery): RequestRedelivery {
  const force = which === 'delivered';
  return { type: 'RequestRedelivery', accountId, prefix, deliveryIds: null, sinceMs, untilMs, force, which };
}

/** How many would be redelivered now. Throws `REFUSED` where the key takes no deliveries. */
export async function countRedeliverable(
  of: KeyRedelivery,
  options: Pick<RedeliverOptions, 'writer' | 'queue' | 'signal'>,
): Promise<number> {
  await decideOnAccount(options.writer, of.accountId, [requestOf(of)]);
  const quiet = { onRefused: () => undefined, onProgress: () => undefined };
  const counting = new Redelivery({ ...options, ...quiet }, ofKey(of));
  let count = 0;
  for await (const page of pagesOf(of, options)) count += (await counting.eligible(page)).length;
  return count;
}

/**
 * Redelivers them, the newest first. `onPage` gets the time of creation of the oldest that was handled: what was delivered
 * again is found again, so an interrupted command continues with those until then. Throws `REFUSED`.
 */
export async function redeliverOfKey(
  of: KeyRedelivery,
  options: RedeliverOptions & { readonly onPage?: (createdAtMs: number) => void },
): Promise<RedeliverCounts> {
  await changeAccount(options.writer, of.accountId, [requestOf(of)]);
  const redelivery = new Redelivery(options, ofKey(of));
  for await (const page of pagesOf(of, options)) {
    await redelivery.makeDue(await redelivery.eligible(page));
    const oldest = page.at(-1);
    if (oldest !== undefined) options.onPage?.(oldest.createdAtMs);
  }
  return redelivery.counts;
}

const ofKey = ({ which }: KeyRedelivery) => ({ force: which === 'delivered', leavesOut: true });

/** Newest first, until the signal aborts. */
async function* pagesOf(
  { prefix, sinceMs, untilMs, which }: KeyRedelivery,
  { queue, signal }: Pick<RedeliverOptions, 'queue' | 'signal'>,
): AsyncGenerator<readonly DeliverySummary[], void> {
  const range = { sinceMs: sinceMs ?? undefined, untilMs: untilMs ?? undefined };
  const filter = { prefix, ...range, state: which };
  let after: DeliveryPlace | undefined;
  do {
    const { deliveries, next } = await queue.page(filter, { limit: PAGE, after });
    yield deliveries;
    after = next;
  } while (after !== undefined && !signal.aborted);
}

class Redelivery {
  readonly #options: RedeliverOptions;
  readonly #force: boolean;
  readonly #leavesOut: boolean;
  readonly #startedAtMs: number;
  readonly #correlationId = world.randomUUID();
  readonly counts: { -readonly [Name in keyof RedeliverCounts]: number };

  constructor(
    options: RedeliverOptions,
    { force, leavesOut = false }: { readonly force: boolean; readonly leavesOut?: boolean },
  ) {
    this.#options = options;
    this.#force = force;
    this.#leavesOut = leavesOut;
    this.counts = { redelivered: 0, unchanged: 0, refused: 0, ...(leavesOut && { left_out: 0 }) };
    this.#startedAtMs = options.writer.clock.now();
  }

  /** One that was named is refused; of those of a key it is none that was asked for, unless it may be one. */
  #leave(id: string, reason: string): void {
    if (!this.#leavesOut || reason === UNREADABLE) this.refuse(id, reason);
    else this.counts.left_out = (this.counts.left_out ?? 0) + 1;
  }

  refuse(what: string, reason: string): void {
    this.counts.refused += 1;
    this.#options.onRefused(what, reason);
  }

  /** Those that may be redelivered by their state and their transaction; the others are counted. */
  async eligible(deliveries: readonly DeliverySummary[]): Promise<DeliverySummary[]> {
    const gone = await goneTransactions(this.#options.writer.store, deliveries);
    return deliveries.filter(({ id, state, transactionId }) => {
      const refusal = redeliveryRefusal(state, this.#force);
      const isDone = refusal !== undefined && refusal !== 'pending';
      const reason = gone.get(transactionId) ?? (isDone ? WHY_NOT[refusal] : undefined);
      if (reason !== undefined) this.#leave(id, reason);
      else if (refusal === 'pending') this.counts.unchanged += 1;
      else return true;
      return false;
    });
  }

  /** Records the request; `false` where the key takes no deliveries now. */
  async record(deliveries: readonly DeliverySummary[]): Promise<boolean> {
    const [{ accountId, prefix } = { accountId: 0, prefix: '' }] = deliveries;
    const { writer } = this.#options;
    const author = { ...writer.author, correlationId: this.#correlationId };
    const deliveryIds = deliveries.map(({ id }) => id);
    const range = { sinceMs: null, untilMs: null };
    try {
      await changeAccount({ ...writer, author }, accountId, [
        { type: 'RequestRedelivery', accountId, prefix, deliveryIds, ...range, force: this.#force },
      ]);
      return true;
    } catch (error) {
      if (!(error instanceof FuelError) || error.code !== 'REFUSED') throw error;
      for (const id of deliveryIds) this.refuse(id, error.message);
      return false;
    }
  }

  async makeDue(deliveries: readonly DeliverySummary[]): Promise<void> {
    const { counts } = this;
    for (const delivery of deliveries) {
      const dueAtMs = this.#startedAtMs + Math.floor((counts.redelivered * 1000) / REDELIVERED_PER_SECOND);
      const result = await this.#options.queue.redeliver(delivery, { force: this.#force, dueAtMs });
      if (result === 'due') counts.redelivered += 1;
      else if (result === 'pending') counts.unchanged += 1;
      else this.#leave(delivery.id, result === 'not known' ? 'it was removed meanwhile' : WHY_NOT[result]);
      this.#options.onProgress({ ...counts });
    }
  }
}

const UNREADABLE = 'an event of its transaction can not be read: fuel verify';
const WHY_NOT = {
  withdrawn: 'its transaction was voided or cancelled, so it is never sent again',
  delivered: 'it was delivered already: use --force to send it once more',
} as const;

/** Why a transaction is never sent again: by its events, which the delivery log may not know yet. */
async function goneTransactions(
  store: EventStore,
  deliveries: readonly DeliverySummary[],
): Promise<ReadonlyMap<number, string>> {
  const ids = [...new Set(deliveries.map(({ transactionId }) => transactionId))];
  const idOf = new Map(ids.map((id) => [transactionStream(id), id]));
  const gone = new Map<number, string>();
  for await (const [stream, history] of readInParts(store, [...idOf.keys()])) {
    const id = idOf.get(stream) as number;
    if (history.some(isDamaged) || history[0]?.data instanceof Unreadable) gone.set(id, UNREADABLE);
    else if (history.some(({ type }) => isWithdrawalType(type))) gone.set(id, WHY_NOT.withdrawn);
    else if (history.length === 0) gone.set(id, 'its transaction was erased, so it is never sent again');
  }
  return gone;
}
