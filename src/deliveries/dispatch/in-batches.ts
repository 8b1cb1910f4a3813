import { setImmediate as nextTurn } from 'node:timers/promises';

export interface BatchLimits<T> {
  readonly mostItems: number;
  readonly mostBytes: number;
  readonly bytesOf: (item: T) => number;
}

/**
 * Groups what an iteration has at hand, without ever waiting for more: a batch holds between one and
 * `mostItems` items, and takes no further one once it has reached `mostBytes`. Ends with the iteration and rejects with it.
 */
export async function* inBatches<T>(
  items: AsyncIterable<T>,
  { mostItems, mostBytes, bytesOf }: BatchLimits<T>,
): AsyncGenerator<T[], void> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const first = await next;
      if (first.done === true) return;
      const batch = [first.value];
      let bytes = bytesOf(first.value);
      next = iterator.next();
      next.catch(() => undefined); // it is awaited in the next round, after this batch was handled
      while (batch.length < mostItems && bytes < mostBytes) {
        const more = await Promise.race([next, nextTurn(undefined)]);
        if (more === undefined || more.done === true) break;
        batch.push(more.value);
        bytes += bytesOf(more.value);
        next = iterator.next();
        next.catch(() => undefined);
      }
      yield batch;
    }
  } finally {
    await iterator.return?.();
  }
}
