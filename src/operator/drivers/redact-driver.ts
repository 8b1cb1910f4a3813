import { namesDriver } from '../../../projections/record.ts';
import type { Clock } from '../../base/clock.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { type WithDriver, withoutDriver } from '../../domain/transaction.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { batchesOf } from '../../event-store/batch-bytes.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { namedLeaves } from '../../seals/named-leaves.ts';
import { fannedOut } from '../erase/fanned-out.ts';
import { repairRow } from '../verify/repair-view.ts';
import { type DriverQuery, findDriver, isOfDriver, isRedactedEvent } from './find-driver.ts';

export interface RedactionOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  readonly queue: Pick<DeliveryQueue, 'page' | 'get' | 'change'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'status'>;
  readonly coordination: Pick<Coordination, 'live'>;
  readonly clock: Clock;
  readonly author: Author;
  readonly reason: string;
  /** Counts what would change, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Ends the work between two transactions. Repeating the call continues with the rest. */
  readonly signal: AbortSignal;
  readonly onProgress: (figures: object) => void;
}

/** The numbers of events, rows and deliveries that were changed. */
export interface RedactionFigures {
  readonly events: number;
  readonly rows: number;
  readonly deliveries: number;
}

interface Driver {
  readonly accountId: number;
  readonly driverId: number;
}

const IDS_PER_READ = 200;
/** Each leaf has about 120 bytes, so an event with this many is far below its limit. */
const LEAVES_AN_EVENT = 1_000;
/** Another writer may append to a transaction meanwhile. */
const MAX_TRIES = 10;

/**
 * Removes a driver's name and number from every transaction of an account: records `DriverRedacted`, then changes the stream and
 * the row of each transaction, and finally the deliveries, once no former text can arrive any more. This order lets it be
 * repeated after a kill. Rejects with `REFUSED` if no transaction has the driver.
 */
export async function redactDriver(
  { accountId, driverId }: Driver,
  options: RedactionOptions,
): Promise<RedactionFigures> {
  const { store, clock, dryRun, signal, onProgress } = options;
  const query = { accountId, driver: driverId };
  const ids: number[] = [];
  let last: Position = 0;
  let named = 0;
  const onRead = (looked: number): void => onProgress({ 'events read': looked });
  for await (const found of findDriver(query, { store, signal, onProgress: onRead })) {
    ids.push(found.id);
    for (const event of found.named) {
      last = Math.max(last, event.position);
      if (!isRedactedEvent(event)) named += 1;
    }
  }
  if (signal.aborted) return { events: 0, rows: 0, deliveries: 0 };
  if (ids.length === 0)
    throw new FuelError(
      'REFUSED',
      `No transaction of account ${accountId} has the driver ${driverId}. See \`fuel driver find\``,
    );
  if (dryRun) {
    const [rows, deliveries] = [await countRows(ids, options), await countDeliveries(ids, options)];
    return { events: named, rows, deliveries };
  }
  const naming = new EventNaming({ accountId, driverId }, options);
  if (named > 0)
    for await (const [, history] of readInParts(store, ids.map(transactionStream))) naming.add(history);
  await naming.record();
  let [events, rows, deliveries] = [0, 0, 0];
  for (const id of ids) {
    if (signal.aborted) break;
    const changed = await redactTransaction(id, { query, naming }, options);
    events += changed.events;
    rows += changed.rows;
    onProgress({ events, rows });
  }
  await fannedOut(last, options);
  for await (const id of withDeliveries(ids, options)) {
    if (signal.aborted) break;
    deliveries += await options.queue.change({ kind: 'redact', transactionId: id }, clock.now());
    onProgress({ events, rows, deliveries });
  }
  return { events, rows, deliveries };
}

interface Redacting {
  readonly query: DriverQuery;
  readonly naming: EventNaming;
}

/** Names the events that will be replaced in a `DriverRedacted` beforehand, each by its leaf without the name. */
class EventNaming {
  readonly #driver: Driver;
  readonly #options: RedactionOptions;
  readonly #seen = new Set<Position>();
  #waiting: Pick<RecordedEvent, 'position'>[] = [];

  constructor(driver: Driver, options: RedactionOptions) {
    this.#driver = driver;
    this.#options = options;
  }

  add(events: readonly RecordedEvent[]): void {
    for (const { position } of events) {
      if (this.#seen.has(position)) continue;
      this.#seen.add(position);
      this.#waiting.push({ position });
    }
  }

  async record(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { store, author, clock, reason } = this.#options;
    const leaves = await namedLeaves(store, this.#waiting);
    this.#waiting = [];
    const about = { driver_id: this.#driver.driverId, account_id: this.#driver.accountId, reason };
    for (const some of batchesOf(leaves, { maxItems: LEAVES_AN_EVENT, bytesOf: () => 0 })) {
      const data = { ...about, leaves: some };
      await recordOperations(store, [{ type: 'DriverRedacted', data }], { author, clock });
    }
  }
}

/** Redacts the stream, then the row, even if the view is behind: the projector may already hold the former event. */
async function redactTransaction(
  id: number,
  how: Redacting,
  { store, view }: Pick<RedactionOptions, 'store' | 'view'>,
): Promise<Pick<RedactionFigures, 'events' | 'rows'>> {
  const isNamed = await isNamedInRow(id, view);
  const events = await rewriteStream(id, how, store);
  const hasView = (await view.checkpoint()) !== undefined;
  if (hasView && (events > 0 || isNamed) && !(await repairRow(id, { store, view })))
    throw new FuelError(
      'STORE_BUSY',
      `transaction ${id} of the view keeps changing. Run the same command again`,
    );
  return { events, rows: isNamed ? 1 : 0 };
}

async function rewriteStream(id: number, { query, naming }: Redacting, store: EventStore): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const history = await store.readStream(transactionStream(id));
    const named = new Set(history.filter((event) => isOfDriver(event, query) && !isRedactedEvent(event)));
    if (named.size === 0) return 0;
    naming.add(history);
    await naming.record();
    const events = history.map((event) =>
      named.has(event) ? { ...event, data: withoutDriver(event.data as WithDriver) } : event,
    );
    if (await store.rewrite(events)) return named.size;
  }
  throw new FuelError('STORE_BUSY', `transaction ${id} keeps changing. Run the same command again`);
}

async function isNamedInRow(id: number, view: Pick<TransactionsView, 'find'>): Promise<boolean> {
  const row = (await view.find([id])).get(id)?.shown;
  return row != null && namesDriver(row.record);
}

async function countRows(ids: readonly number[], { view }: RedactionOptions): Promise<number> {
  let rows = 0;
  for (const part of partsOf(ids))
    for (const { shown } of (await view.find(part)).values())
      if (shown !== null && namesDriver(shown.record)) rows += 1;
  return rows;
}

async function countDeliveries(ids: readonly number[], { queue }: RedactionOptions): Promise<number> {
  let count = 0;
  for (const transactionIds of partsOf(ids)) {
    const { deliveries } = await queue.page({ transactionIds }, { limit: Infinity });
    for (const { record } of await queue.get(deliveries)) if (namesDriver(record)) count += 1;
  }
  return count;
}

/** Yields the transactions that the log has a delivery of. */
async function* withDeliveries(
  ids: readonly number[],
  { queue }: Pick<RedactionOptions, 'queue'>,
): AsyncGenerator<number, void> {
  for (const transactionIds of partsOf(ids)) {
    const { deliveries } = await queue.page({ transactionIds }, { limit: Infinity });
    yield* new Set(deliveries.map(({ transactionId }) => transactionId));
  }
}

function partsOf(ids: readonly number[]): Generator<number[], void> {
  return batchesOf(ids, { maxItems: IDS_PER_READ, bytesOf: () => 0 });
}
