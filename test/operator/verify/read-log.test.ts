import { expect, test } from 'vitest';
import { readLog } from '../../../src/operator/verify/read-log.ts';
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

test('every judge gets each block of the part that is read, one after the other', async () => {
  const { store, judged, judge } = await start();
  const progress: number[] = [];
  const onProgress = (events: number): void => void progress.push(events);
  await readLog([{ judge }, { judge }], { store, after: 1, upTo: 3, blockSize: 1, onProgress });
  expect(judged).toEqual([[2], [2], [3], [3]]);
  expect(progress.at(-1)).toBe(2);
});

test('a log that is read no further is not taken for one that was read to its end', async () => {
  const { store, judged, judge } = await start();
  const stopping = new AbortController();
  const stop = {
    async judge() {
      stopping.abort(new Error('asked to stop'));
    },
  };
  const reading = readLog([{ judge }, stop], { store, blockSize: 1, signal: stopping.signal });
  await expect(reading).rejects.toThrow('asked to stop');
  expect(judged).toEqual([[1]]);
});
