import { errorKind } from './errors.ts';

export interface FailedItem<T> {
  readonly item: T;
  readonly error: unknown;
}

/**
 * Does the work for all items together. If it fails, does it for each half, and so on, until the items that fail by
 * themselves are known. Returns those; the work is done for all others. The work must be safe to repeat. Rejects if a
 * store is unavailable or closed: the caller can then retry with the same items.
 */
export async function isolateFailures<T>(
  items: readonly T[],
  work: (items: readonly T[]) => Promise<void>,
): Promise<FailedItem<T>[]> {
  if (items.length === 0) return [];
  try {
    await work(items);
    return [];
  } catch (error) {
    const kind = errorKind(error);
    if (kind === 'unavailable' || kind === 'closed') throw error;
    const [item, ...others] = items;
    if (item !== undefined && others.length === 0) return [{ item, error }];
  }
  const middle = Math.ceil(items.length / 2);
  const failed = await isolateFailures(items.slice(0, middle), work);
  return [...failed, ...(await isolateFailures(items.slice(middle), work))];
}
