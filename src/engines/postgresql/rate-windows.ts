import type { Clock } from '../../base/clock.ts';
import { type RateWindows, WINDOW_SECONDS } from '../../pull/edge/rate-windows/rate-windows.ts';
import { createSharedRateWindows } from '../../pull/edge/rate-windows/shared.ts';
import type { PostgresConnection } from './driver/connection.ts';
import { schemaOf } from './driver/schema.ts';
import { inMs } from './driver/values.ts';

/** The API must answer 503 within 2 s while PostgreSQL is unavailable. */
const ANSWER_MS = 1_200;
/** One in this many hits removes the windows that have ended. */
const REMOVED_EVERY = 10_000;

/**
 * Creates windows that all processes on one PostgreSQL share. While PostgreSQL is unavailable a hit rejects with
 * `STORE_UNAVAILABLE` within 1.5 s: a request that can't be counted is refused. The table is unlogged, so that counts may
 * be lost if the server ends unexpectedly. Then some more requests pass.
 */
export function createPostgresRateWindows(options: {
  readonly connection: PostgresConnection;
  readonly steady?: Clock;
}): RateWindows {
  const { connection, steady } = options;
  const windows = `"${connection.schema}".rate_windows`;
  const columns =
    'id text PRIMARY KEY, hits bigint NOT NULL, counted boolean NOT NULL, ends_at timestamptz NOT NULL';
  const statements = [`CREATE UNLOGGED TABLE IF NOT EXISTS ${windows} (${columns}) WITH (fillfactor = 50)`];
  const schema = schemaOf(connection, { name: 'rate-windows', version: 1, statements });
  const sql = counting(windows);
  const over = { sql: `DELETE FROM ${windows} WHERE ends_at < now()` };
  let hits = 0;
  return createSharedRateWindows(async (id, limit) => {
    hits += 1;
    const isToRemove = hits % REMOVED_EVERY === 1;
    const use = () =>
      connection.use(ANSWER_MS, async (run) => {
        if (isToRemove) await run(over);
        return run({ sql, values: [id, limit] });
      });
    const [window] = await schema.use(ANSWER_MS, use);
    return window as unknown as { counted: boolean; hits: number; leftMs: number };
  }, steady);
}

/** Starts a window if none is running, then counts the hit if fewer than `limit` were counted, in one statement. */
function counting(windows: string): string {
  const isOver = 'is_now.ends_at <= now()';
  const before = `CASE WHEN ${isOver} THEN 0 ELSE is_now.hits END`;
  const end = `now() + interval '${WINDOW_SECONDS} s'`;
  return `INSERT INTO ${windows} AS is_now (id, hits, counted, ends_at)
    VALUES ($1, LEAST(1, $2::bigint), $2::bigint > 0, ${end})
    ON CONFLICT (id) DO UPDATE SET
      counted = ${before} < $2::bigint,
      hits = CASE WHEN ${before} < $2::bigint THEN ${before} + 1 ELSE ${before} END,
      ends_at = CASE WHEN ${isOver} THEN ${end} ELSE is_now.ends_at END
    RETURNING counted, hits, ${inMs('ends_at - now()')} AS "leftMs"`;
}
