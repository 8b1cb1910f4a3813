import { expect, test } from 'vitest';
import { inBatches } from '../../../src/push/fan-out/run-fan-out.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';

const ofAtMost = (maxItems: number) => ({ maxItems, maxBytes: 1_000, bytesOf: () => 1 });

/** Items that are handed out when they are put in; says whether the reader has closed it. */
function source() {
  const ready: (number | Error)[] = [];
  let arrived = Promise.withResolvers<void>();
  let ended = false;
  const state = { closed: false };
  const wake = () => {
    arrived.resolve();
    arrived = Promise.withResolvers();
  };
  async function* items(): AsyncGenerator<number> {
    try {
      for (;;) {
        const next = ready.shift();
        if (next instanceof Error) throw next;
        if (next !== undefined) yield next;
        else if (ended) return;
        else await arrived.promise;
      }
    } finally {
      state.closed = true;
    }
  }
  return {
    items: items(),
    state,
    put(...more: readonly (number | Error)[]) {
      ready.push(...more);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
  };
}

test('a batch holds what is at hand, at most so many, in its order', async () => {
  const { items, put } = source();
  put(1, 2, 3, 4, 5, 6, 7);
  const batches = inBatches(items, ofAtMost(3));
  expect((await batches.next()).value).toEqual([1, 2, 3]);
  expect((await batches.next()).value).toEqual([4, 5, 6]);
  expect((await batches.next()).value).toEqual([7]);
});

test('a batch takes no further item once it has reached its bytes', async () => {
  const { items, put } = source();
  put(4, 5, 1, 20, 1, 1);
  const batches = inBatches(items, { maxItems: 10, maxBytes: 9, bytesOf: (item) => item });
  expect((await batches.next()).value).toEqual([4, 5]);
  expect((await batches.next()).value).toEqual([1, 20]);
  expect((await batches.next()).value).toEqual([1, 1]);
});

test('a batch does not wait for more, and nothing that comes later is lost', async () => {
  const { items, put } = source();
  const batches = inBatches(items, ofAtMost(3));
  put(1);
  expect((await batches.next()).value).toEqual([1]);
  const pending = batches.next();
  let came = false;
  void pending.then(() => {
    came = true;
  });
  await settle();
  expect(came).toBe(false);
  put(2, 3);
  expect((await pending).value).toEqual([2, 3]);
});

test('what comes while a batch is being handled goes into the next one', async () => {
  const { items, put } = source();
  const batches = inBatches(items, ofAtMost(10));
  put(1);
  await batches.next();
  put(2);
  await settle();
  put(3);
  await settle();
  expect((await batches.next()).value).toEqual([2, 3]);
});

test('batches end with the iteration, after what came before its end', async () => {
  const { items, put, end } = source();
  put(1, 2);
  end();
  const batches: number[][] = [];
  for await (const batch of inBatches(items, ofAtMost(10))) batches.push(batch);
  expect(batches.flat()).toEqual([1, 2]);
});

test('batches reject with what the iteration rejects with', async () => {
  const { items, put } = source();
  const batches = inBatches(items, ofAtMost(10));
  put(1);
  expect((await batches.next()).value).toEqual([1]);
  put(new Error('the subscription is gone'));
  await expect(batches.next()).rejects.toThrow('the subscription is gone');
});

test('who stops taking batches closes the iteration', async () => {
  const { items, state, put } = source();
  put(1, 2, 3, 4);
  for await (const batch of inBatches(items, ofAtMost(2))) {
    expect(batch).toEqual([1, 2]);
    break;
  }
  expect(state.closed).toBe(true);
});
