import type { Clock } from '../../../base/clock.ts';
import type { DeliveryQueue } from '../../../push/queue/delivery-queue.ts';
import type { MongoConnection } from '../driver/connection.ts';
import { PreparedCollections } from '../driver/prepared-collections.ts';
import { DELIVERIES_PLAN, deliveryCollections, type Use } from './collections.ts';
import { mongoControl } from './control.ts';
import { mongoLaneReads, mongoReads } from './reads.ts';
import { mongoWork } from './work.ts';

const POLL_MS = 500;
/** A lease lasts 5 s: a later answer is of no use. */
const ANSWER_MS = 5_000;

export interface MongoDeliveryQueueOptions {
  /** Shared; its owner closes it. */
  readonly connection: MongoConnection;
  /** The time of what the port's calls don't date, and of the polls for other processes' work. */
  readonly clock: Clock;
  /** How soon work of other processes is seen at the latest. */
  readonly pollMs?: number | undefined;
}

/**
 * Opens the delivery log of a MongoDB, for any number of processes; the first call creates missing collections. What is
 * acknowledged is on a majority of the replica set. Each delivery is one document that changes by guarded updates; only
 * a change of a failure streak, or a report that meets something unexpected, is a transaction. So `enqueue` and `report`
 * are all or nothing for each delivery, not for the batch: after an interruption the same call, repeated, completes the
 * rest, or the leases end. What can't be stored is refused before anything is stored.
 *
 * Calls reject with `STORE_UNAVAILABLE` while no server takes them, after 5 s at the latest; they may have been
 * carried out all the same.
 */
export function openMongoDeliveryQueue(options: MongoDeliveryQueueOptions): DeliveryQueue {
  const { connection, clock, pollMs = POLL_MS } = options;
  const collections = new PreparedCollections(connection, DELIVERIES_PLAN);
  const use: Use = (work, withinMs = ANSWER_MS) =>
    collections.use(withinMs, (db) => work(deliveryCollections(db)));
  const { madeDue, ...work } = mongoWork(use, { connection, clock, pollMs });
  return {
    ...work,
    ...mongoControl(use, clock, madeDue),
    ...mongoReads(use, clock),
    ...mongoLaneReads(use),
    /** Stops polling; the owner closes the connection. */
    async close() {
      collections.close();
      work.changed.close();
    },
  };
}
