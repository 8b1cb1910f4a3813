import type { Collection, Document } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import { type RateWindows, WINDOW_SECONDS } from '../../pull/edge/rate-windows/rate-windows.ts';
import { createSharedRateWindows } from '../../pull/edge/rate-windows/shared.ts';
import type { MongoConnection } from './driver/connection.ts';
import { type CollectionsPlan, PreparedCollections, retryUpsert } from './driver/prepared-collections.ts';

/** The API must answer 503 within 2 s while MongoDB is unavailable. */
const ANSWER_MS = 1_200;
const WINDOW_MS = WINDOW_SECONDS * 1_000;

const PLAN: CollectionsPlan = {
  name: 'rate-windows',
  version: 1,
  collections: { rate_windows: [{ key: { ends_at: 1 }, expireAfterSeconds: 0 }] },
};

interface WindowDocument {
  readonly _id: string;
  readonly hits: number;
  readonly ends_at: Date;
  /** Of the last hit: whether it was counted, and the server's time. */
  readonly counted: boolean;
  readonly now: Date;
}

/**
 * Windows shared by all processes on one MongoDB. Rejects with `STORE_UNAVAILABLE` within 1.5 s while MongoDB is unavailable:
 * a request that can't be counted is refused.
 *
 * The limiter of rate-limiter-flexible is not used: it counts the requests that it refuses, uses the clock of each
 * process and takes up to three round trips to restart a window.
 */
export function createMongoRateWindows(options: {
  readonly connection: MongoConnection;
  readonly clock?: Clock;
}): RateWindows {
  const { connection, clock } = options;
  const collections = new PreparedCollections(connection, PLAN);
  return createSharedRateWindows(async (id, limit) => {
    const { counted, hits, ends_at, now } = await collections.use(ANSWER_MS, (db) =>
      // A count may be lost in a failover: then some more requests pass.
      hit(db.collection('rate_windows', { writeConcern: { w: 1 } }), id, limit),
    );
    return { counted, hits, leftMs: ends_at.getTime() - now.getTime() };
  }, clock);
}

async function hit(windows: Collection<WindowDocument>, id: string, limit: number): Promise<WindowDocument> {
  const window = await retryUpsert(() =>
    windows.findOneAndUpdate({ _id: id }, counting(limit), { upsert: true, returnDocument: 'after' }),
  );
  if (window === null) throw new Error('MongoDB returned no window after it was written');
  return window;
}

/** Starts a window if none runs, then counts one hit if fewer than `limit` were. An absent field compares as less. */
function counting(limit: number): Document[] {
  return [
    { $set: { now: '$$NOW', over: { $lte: ['$ends_at', '$$NOW'] } } },
    {
      $set: {
        ends_at: { $cond: ['$over', { $add: ['$$NOW', WINDOW_MS] }, '$ends_at'] },
        hits: { $cond: ['$over', 0, '$hits'] },
      },
    },
    { $set: { counted: { $lt: ['$hits', limit] } } },
    { $set: { hits: { $cond: ['$counted', { $add: ['$hits', 1] }, '$hits'] } } },
    { $unset: 'over' },
  ];
}
