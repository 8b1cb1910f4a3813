import { formatDateTime } from '../../src/domain/values/date-time.ts';
import type { PageRequest } from './page-client.ts';

const DAY_MS = 86_400_000;

/** Draws the first page of each key in turn, from two days ago until tomorrow. */
export function newestPages(keys: readonly string[]): () => PageRequest {
  const toMs = Date.now() + DAY_MS;
  const path = `/transactions?from=${formatDateTime(toMs - 3 * DAY_MS)}&to=${formatDateTime(toMs)}`;
  let next = 0;
  return () => ({ path, key: keys[next++ % keys.length] ?? '' });
}
