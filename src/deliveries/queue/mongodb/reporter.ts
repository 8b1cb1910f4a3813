import type { MongoConnection } from '../../../mongodb/connection.ts';
import type { WebhookHealth } from '../delivery-queue.ts';
import { SerialWork } from '../serial-work.ts';
import { type DeliveryCollections, deliveryCollections } from './collections.ts';
import { isFailure, movesRun, type PendingReport, settle } from './report.ts';
import { applyRuns, ensureLanes, readLanes } from './runs.ts';

const NO_CHANGE: ReadonlyMap<string, WebhookHealth> = new Map();

/**
 * Records reports and the runs of failures that they move.
 *
 * Successes of healthy lanes, which is nearly everything, are one look at the lanes and one write. Where a run
 * changes, deliveries and lanes change in one transaction: a failure is counted exactly once, whoever dies when.
 */
export class MongoReporter {
  readonly #connection: MongoConnection;
  /** Transactions of one process on the same lanes would only make each other fail. */
  readonly #transactions = new SerialWork();

  constructor(connection: MongoConnection) {
    this.#connection = connection;
  }

  /** The health of each lane whose run changed. */
  async record(
    collections: DeliveryCollections,
    pending: readonly PendingReport[],
  ): Promise<ReadonlyMap<string, WebhookHealth>> {
    if (!(await this.#mayMoveRun(collections, pending))) {
      await settle(collections, pending);
      return NO_CHANGE;
    }
    return this.#transactions.run(() => this.#inTransaction(pending));
  }

  /** Also makes the lanes that are missing. */
  async #mayMoveRun({ lanes }: DeliveryCollections, pending: readonly PendingReport[]): Promise<boolean> {
    const moving = [...new Set(pending.filter(movesRun).map(({ prefix }) => prefix))];
    if (moving.length === 0) return false;
    const before = await readLanes(lanes, moving);
    const someRun = [...before.values()].some(({ failed_in_a_row }) => failed_in_a_row > 0);
    if (!someRun && !pending.some(isFailure)) return false;
    const missing = moving.filter((prefix) => !before.has(prefix));
    await ensureLanes(lanes, missing);
    return true;
  }

  #inTransaction(pending: readonly PendingReport[]): Promise<ReadonlyMap<string, WebhookHealth>> {
    return this.#connection.use((db) => {
      const collections = deliveryCollections(db);
      return this.#connection.client.withSession((session) =>
        session.withTransaction(async () => {
          const counted = await settle(collections, pending, session);
          return applyRuns(collections.lanes, counted, session);
        }),
      );
    });
  }
}
