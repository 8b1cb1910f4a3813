import type { Collection, Document } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import { type RateWindows, WINDOW_SECONDS } from '../../pull/edge/rate-windows/rate-windows.ts';
import { createSharedRateWindows } from '../../pull/edge/rate-windows/shared.ts';
import { type CollectionsPlan, collectionsOf, retryUpsert } from './driver/collections.ts';
import type { MongoConnection } from './driver/connection.ts';

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
  /** Says whether the last hit was counted. */
  readonly counted: boolean;
  /** The server's time of the last hit. */
  readonly now: Date;
}

/**
 * Creates windows that all processes on one MongoDB share. While MongoDB is unavailable a hit rejects with
 * `STORE_UNAVAILABLE` within 1.5 s: a request that can't be counted is refused.
 *
 * The limiter of rate-limiter-flexible is not used, since it counts the requests that it refuses, uses the clock of
 * each process, and takes up to three round trips to restart a window.
 */
export function createMongoRateWindows(options: {
  readonly connection: MongoConnection;
  readonly steady?: Clock;
}): RateWindows {
  const { connection, steady } = options;
  const collections = collectionsOf(connection, PLAN);
  return createSharedRateWindows(async (id, limit) => {
    const { counted, hits, ends_at, now } = await collections.use(ANSWER_MS, () =>
      // A failover may lose a count. Then some more requests pass.
      connection.use((db) => hit(db.collection('rate_windows', { writeConcern: { w: 1 } }), id, limit)),
    );
    return { counted, hits, leftMs: ends_at.getTime() - now.getTime() };
  }, steady);
}

async function hit(windows: Collection<WindowDocument>, id: string, limit: number): Promise<WindowDocument> {
  const window = await retryUpsert(() =>
    windows.findOneAndUpdate({ _id: id }, counting(limit), { upsert: true, returnDocument: 'after' }),
  );
  if (window === null) throw new Error('MongoDB returned no window after it was written');
  return window;
}

/**
 * Starts a window if none is running, then counts the hit if fewer than `limit` were counted. An absent field compares
 * as less.
 */
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
