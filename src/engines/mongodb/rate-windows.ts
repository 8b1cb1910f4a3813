import { LRUCache } from 'lru-cache';
import type { Collection, Document } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import {
  type RateVerdict,
  type RateWindows,
  WINDOW_SECONDS,
} from '../../pull/edge/rate-windows/rate-windows.ts';
import type { MongoConnection } from './driver/connection.ts';
import { type CollectionsPlan, PreparedCollections, retryUpsert } from './driver/prepared-collections.ts';

/** The API must answer 503 within 2 s while MongoDB is unavailable. */
const ANSWER_MS = 1_200;
/** Keys at their limit that this process remembers; a forgotten one costs one more round trip. */
const MAX_REMEMBERED = 100_000;
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

/** An id that was refused: `hits` were counted in a window that lasts at least to `endsAtMs`. */
interface Refusal {
  readonly hits: number;
  readonly endsAtMs: number;
}

/**
 * Windows shared by all processes on one MongoDB. A hit is one round trip, which checks and counts in one step by the
 * server's clock; hits of a key that is known to be at its limit are refused without one. Rejects with
 * `STORE_UNAVAILABLE` within 1.5 s while MongoDB is unavailable: a request that can't be counted is refused.
 *
 * The limiter of rate-limiter-flexible is not used: it counts the requests that it refuses, uses the clock of each
 * process and takes up to three round trips to restart a window. `clock` must be monotonic.
 */
export function createMongoRateWindows(options: {
  readonly connection: MongoConnection;
  readonly clock?: Clock;
}): RateWindows {
  const { connection, clock = { now: () => performance.now() } } = options;
  const collections = new PreparedCollections(connection, PLAN);
  const refusals = new LRUCache<string, Refusal>({ max: MAX_REMEMBERED });

  function known(id: string, limit: number): RateVerdict | undefined {
    const refusal = refusals.get(id);
    if (refusal === undefined || refusal.hits < limit) return undefined;
    const leftMs = refusal.endsAtMs - clock.now();
    return leftMs > 0 ? refused(leftMs) : undefined;
  }

  async function count(id: string, limit: number): Promise<RateVerdict> {
    const askedAtMs = clock.now(); // before the server's time, so that what is remembered never outlasts the window
    const window = await collections.use(ANSWER_MS, (db) =>
      // A count may be lost in a failover: then some more requests pass.
      hit(db.collection('rate_windows', { writeConcern: { w: 1 } }), id, limit),
    );
    if (window.counted) return { allowed: true };
    const leftMs = window.ends_at.getTime() - window.now.getTime();
    refusals.set(id, { hits: window.hits, endsAtMs: askedAtMs + leftMs });
    return refused(leftMs);
  }

  return { hit: async (id, limit) => known(id, limit) ?? count(id, limit) };
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

function refused(leftMs: number): RateVerdict {
  return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) };
}
