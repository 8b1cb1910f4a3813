import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Groups what an iteration has at hand, without ever waiting for more: a batch holds between one and
 * `mostItems` items. Ends with the iteration and rejects with it.
 */
export async function* inBatches<T>(items: AsyncIterable<T>, mostItems: number): AsyncGenerator<T[], void> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const first = await next;
      if (first.done === true) return;
      const batch = [first.value];
      next = iterator.next();
      next.catch(() => undefined); // it is awaited in the next round, after this batch was handled
      while (batch.length < mostItems) {
        const more = await Promise.race([next, nextTurn(undefined)]);
        if (more === undefined || more.done === true) break;
        batch.push(more.value);
        next = iterator.next();
        next.catch(() => undefined);
      }
      yield batch;
    }
  } finally {
    await iterator.return?.();
  }
}
