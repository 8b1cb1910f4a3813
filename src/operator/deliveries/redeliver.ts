import { type AccountWriter, changeAccount, decideOnAccount } from '../../accounts/change-account.ts';
import { FuelError } from '../../base/errors.ts';
import { pause } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import type { Redeliverable } from '../../domain/account-events.ts';
import { isWithdrawalType, transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import { isDamaged, Unreadable } from '../../event-store/recorded-event.ts';
import { MAX_RETRY_AFTER_MS } from '../../push/pace/retry-after.ts';
import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryPlace, DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { redeliveryRefusal } from '../../push/queue/next-state.ts';

/** The due times are spread at this rate, so that receivers keep capacity for live deliveries. */
const REDELIVERED_PER_SECOND = 50;
/** Nothing is made due later than this from now: a due time that is further away than a retry can be counts as due. */
const MAX_AHEAD_MS = MAX_RETRY_AFTER_MS;

const PAGE = 500;

export interface RedeliverOptions {
  readonly writer: AccountWriter;
  readonly queue: DeliveryQueue;
  readonly onRefused: (what: string, reason: string) => void;
  readonly onProgress: (counts: RedeliverCounts) => void;
  /** Ends the work between two pages, and waits in between. Repeating the command continues with the rest. */
  readonly signal: AbortSignal;
}

export interface RedeliverCounts {
  readonly redelivered: number;
  /** Already pending, either for the first time or from an earlier redelivery. */
  readonly unchanged: number;
  readonly refused: number;
  /** For a key: deliveries that are never sent again, since their transactions were withdrawn or erased or they were removed. */
  readonly left_out?: number;
}

type RequestRedelivery = Extract<AccountCommand, { readonly type: 'RequestRedelivery' }>;

/** The deliveries of one key that were created in a range of time and are in one state. */
export interface KeyRedelivery
  extends Pick<RequestRedelivery, 'accountId' | 'prefix' | 'sinceMs' | 'untilMs'> {
  readonly which: Redeliverable;
}

/**
 * Redelivers the deliveries with these ids: failed ones, and delivered ones only with `force`. A delivery that is refused is
 * reported with the reason and does not affect the others. The request is recorded in the streams of the accounts first.
 */
export async function redeliverByIds(
  ids: readonly string[],
  force: boolean,
  options: RedeliverOptions,
): Promise<RedeliverCounts> {
  const redelivery = new Redelivery(options, { force });
  const correlationId = world.randomUUID();
  const writer = { ...options.writer, author: { ...options.writer.author, correlationId } };
  const known: DeliverySummary[] = [];
  for (const id of new Set(ids)) {
    const delivery = await options.queue.find(id);
    if (delivery === undefined) redelivery.refuse(id, 'There is no such delivery. See `fuel delivery list`');
    else known.push(delivery);
  }
  for (const [prefix, ofKey] of Map.groupBy(known, (delivery) => delivery.prefix)) {
    const eligible = await redelivery.eligible(ofKey);
    const [first] = eligible;
    if (first === undefined) continue;
    const deliveryIds = eligible.map(({ id }) => id);
    const request = { accountId: first.accountId, prefix, deliveryIds, sinceMs: null, untilMs: null, force };
    try {
      await changeAccount(writer, first.accountId, [{ type: 'RequestRedelivery', ...request }]);
    } catch (error) {
      if (!(error instanceof FuelError) || error.code !== 'REFUSED') throw error;
      for (const id of deliveryIds) redelivery.refuse(id, error.message);
      continue;
    }
    await redelivery.makeDue(eligible);
  }
  return redelivery.counts;
}

/**
 * Redelivers the deliveries of a key, newest first, after it recorded the request. `onPage` gets the creation time of the oldest
 * delivery that was handled: an interrupted redelivery of delivered ones must continue there, since it would find again what
 * was delivered meanwhile. Throws `REFUSED` if the key takes no deliveries.
 */
export async function redeliverOfKey(
  of: KeyRedelivery,
  options: RedeliverOptions & { readonly onPage?: (createdAtMs: number) => void },
): Promise<RedeliverCounts> {
  await changeAccount(options.writer, of.accountId, [requestOf(of)]);
  const redelivery = new Redelivery(options, { force: of.which === 'delivered', left_out: 0 });
  for await (const page of pagesOf(of, options)) {
    await redelivery.makeDue(await redelivery.eligible(page));
    const oldest = page.at(-1);
    if (oldest !== undefined) options.onPage?.(oldest.createdAtMs);
  }
  return redelivery.counts;
}

/** Counts what `redeliverOfKey` would redeliver now, and records nothing. Throws `REFUSED` likewise. */
export async function countRedeliverable(
  of: KeyRedelivery,
  options: Pick<RedeliverOptions, 'writer' | 'queue' | 'signal'>,
): Promise<number> {
  await decideOnAccount(options.writer, of.accountId, [requestOf(of)]);
  const quiet = { onRefused: () => undefined, onProgress: () => undefined };
  const redelivery = new Redelivery(
    { ...options, ...quiet },
    { force: of.which === 'delivered', left_out: 0 },
  );
  let count = 0;
  for await (const page of pagesOf(of, options)) count += (await redelivery.eligible(page)).length;
  return count;
}

/** Ends the key's pending redeliveries as failed and returns how many there were. Throws `REFUSED`. */
export async function cancelRedelivery(
  of: Pick<KeyRedelivery, 'accountId' | 'prefix'> & { readonly reason: string | undefined },
  { writer, queue }: Pick<RedeliverOptions, 'writer' | 'queue'>,
): Promise<number> {
  await changeAccount(writer, of.accountId, [{ type: 'CancelRedelivery', ...of }]);
  const reason = 'the redelivery was cancelled';
  return queue.change({ kind: 'end lane', prefix: of.prefix, reason, redelivered: true }, writer.clock.now());
}

function requestOf({ which, ...of }: KeyRedelivery): RequestRedelivery {
  return { type: 'RequestRedelivery', ...of, deliveryIds: null, force: which === 'delivered', which };
}

/** Pages of deliveries, newest first, until the signal aborts. */
async function* pagesOf(
  { prefix, sinceMs, untilMs, which }: KeyRedelivery,
  { queue, signal }: Pick<RedeliverOptions, 'queue' | 'signal'>,
): AsyncGenerator<readonly DeliverySummary[], void> {
  const filter = { prefix, sinceMs: sinceMs ?? undefined, untilMs: untilMs ?? undefined, state: which };
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
  readonly #startedAtMs: number;
  readonly counts: { -readonly [Name in keyof RedeliverCounts]: number };

  /** With `left_out`, deliveries that are never sent again are only counted. Otherwise they are refused by name. */
  constructor(
    options: RedeliverOptions,
    { force, ...leftOut }: { readonly force: boolean; readonly left_out?: 0 },
  ) {
    this.#options = options;
    this.#force = force;
    this.#startedAtMs = options.writer.clock.now();
    this.counts = { redelivered: 0, unchanged: 0, refused: 0, ...leftOut };
  }

  refuse(what: string, reason: string): void {
    this.counts.refused += 1;
    this.#options.onRefused(what, reason);
  }

  /** Returns the deliveries that may be redelivered by their state and their transaction, and counts the others. */
  async eligible(deliveries: readonly DeliverySummary[]): Promise<DeliverySummary[]> {
    const gone = await goneTransactions(this.#options.writer.store, deliveries);
    return deliveries.filter(({ id, state, transactionId }) => {
      const refusal = redeliveryRefusal(state, this.#force);
      const isDone = refusal !== undefined && refusal !== 'pending';
      const reason = gone.get(transactionId) ?? (isDone ? WHY_NOT[refusal] : undefined);
      if (reason !== undefined) this.#leaveOut(id, reason);
      else if (refusal === 'pending') this.counts.unchanged += 1;
      else return true;
      return false;
    });
  }

  async makeDue(deliveries: readonly DeliverySummary[]): Promise<void> {
    const { counts } = this;
    for (const delivery of deliveries) {
      const dueAtMs = this.#startedAtMs + Math.floor((counts.redelivered * 1000) / REDELIVERED_PER_SECOND);
      await this.#untilNear(dueAtMs);
      const result = await this.#options.queue.redeliver(delivery, { force: this.#force, dueAtMs });
      if (result === 'due') counts.redelivered += 1;
      else if (result === 'pending') counts.unchanged += 1;
      else this.#leaveOut(delivery.id, result === 'not known' ? 'it was removed meanwhile' : WHY_NOT[result]);
      this.#options.onProgress({ ...counts });
    }
  }

  async #untilNear(dueAtMs: number): Promise<void> {
    const { writer, signal } = this.#options;
    const tooEarlyMs = dueAtMs - MAX_AHEAD_MS - writer.clock.now();
    if (tooEarlyMs > 0) await pause(tooEarlyMs, signal);
  }

  /** A transaction that can't be read is refused in any case: its deliveries might have to be sent. */
  #leaveOut(id: string, reason: string): void {
    const { counts } = this;
    if (counts.left_out === undefined || reason === UNREADABLE) this.refuse(id, reason);
    else counts.left_out += 1;
  }
}

const UNREADABLE = 'an event of its transaction cannot be read: fuel verify';
const WHY_NOT = {
  withdrawn: 'its transaction was voided or cancelled, so it is never sent again',
  delivered: 'it was already delivered. Use --force to send it once more',
} as const;

/** Returns the reasons why transactions are never sent again, by their events, which the delivery log may not know yet. */
async function goneTransactions(
  store: EventStore,
  deliveries: readonly DeliverySummary[],
): Promise<ReadonlyMap<number, string>> {
  const ids = new Set(deliveries.map(({ transactionId }) => transactionId));
  const idOf = new Map([...ids].map((id) => [transactionStream(id), id]));
  const gone = new Map<number, string>();
  for await (const [stream, history] of readInParts(store, [...idOf.keys()])) {
    const id = idOf.get(stream) as number;
    if (history.some(isDamaged) || history[0]?.data instanceof Unreadable) gone.set(id, UNREADABLE);
    else if (history.some(({ type }) => isWithdrawalType(type))) gone.set(id, WHY_NOT.withdrawn);
    else if (history.length === 0) gone.set(id, 'its transaction was erased, so it is never sent again');
  }
  return gone;
}
