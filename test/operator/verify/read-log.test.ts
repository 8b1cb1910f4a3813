import { expect, test } from 'vitest';
import { readLog } from '../../../src/operator/verify/read-log.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';

async function start() {
  const { store, append } = openPushStores();
  for (const id of [1, 2, 3, 4]) await append(`transaction-${id}`, confirmed(id)); // at positions 1 to 4
  const judged: number[][] = [];
  const judge = async (
    block: readonly { readonly event: { readonly position: number } }[],
  ): Promise<void> => {
    judged.push(block.map(({ event }) => event.position));
  };
  return { store, judged, judge };
}

test('each block after the start is judged, one after the other, with a rest between them', async () => {
  const { store, judged, judge } = await start();
  const progress: number[] = [];
  const onProgress = (events: number): void => void progress.push(events);
  const rest = async (): Promise<void> => void judged.push([]);
  await readLog({ store, after: 2, blockSize: 1, rest, onProgress }, judge);
  expect(judged).toEqual([[3], [], [4], []]);
  expect(progress).toEqual([1, 2]);
});

test('reading that was interrupted does not look like reading to the end', async () => {
  const { store, judged, judge } = await start();
  const stopping = new AbortController();
  const reading = readLog({ store, blockSize: 1, signal: stopping.signal }, async (block) => {
    await judge(block);
    stopping.abort(new Error('asked to stop'));
  });
  await expect(reading).rejects.toThrow('asked to stop');
  expect(judged).toEqual([[1]]);
});

test('without a rest some blocks are judged at the same time, and all are done at the end', async () => {
  const { store, append } = openPushStores();
  for (let id = 1; id <= 20; id++) await append(`transaction-${id}`, confirmed(id));
  const counts = { underWay: 0, most: 0, done: 0 };
  const full = Promise.withResolvers<void>();
  const judge = async (): Promise<void> => {
    counts.underWay += 1;
    counts.most = Math.max(counts.most, counts.underWay);
    if (counts.underWay === 8) full.resolve();
    await full.promise;
    await settle();
    counts.underWay -= 1;
    counts.done += 1;
  };
  await readLog({ store, blockSize: 1 }, judge);
  expect(counts).toEqual({ underWay: 0, most: 8, done: 20 });
});

test('a judge that fails ends the reading, after the others are done', async () => {
  const { store } = await start();
  let underWay = 0;
  const reading = readLog({ store, blockSize: 1 }, async ([first]) => {
    if (first?.event.position === 2) throw new Error('the store is away');
    underWay += 1;
    await settle();
    underWay -= 1;
  });
  await expect(reading).rejects.toThrow('the store is away');
  expect(underWay).toBe(0);
});
