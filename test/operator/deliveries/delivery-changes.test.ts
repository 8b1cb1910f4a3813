import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DeliveryChanges } from '../../../src/operator/deliveries/delivery-changes.ts';
import { claimFrom, claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { queueInFile } from '../../support/deliveries/open-queue.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

function opened() {
  const path = join(temporaryFolder(), 'deliveries.db');
  const queue = queueInFile({ path, clock: new FakeClock() });
  onTestFinished(() => queue.close());
  const changes = new DeliveryChanges((page) => queue.page({}, page));
  const look = async () => (await changes.look()).map(({ transactionId, state }) => [transactionId, state]);
  return { queue, look };
}

test('what is new or has changed since the last look is seen, however much it is', async () => {
  const { queue, look } = opened();
  await queue.enqueue(numbers(1, 200).map((n) => newDelivery(n, { createdAtMs: n })));
  expect(await look()).toEqual(numbers(1, 200).map((n) => [n, 'pending']));
  expect(await look()).toEqual([]);
  const claimed = await claimFrom(queue, claimOptions(1_000, { limit: 200, laneCapacity: () => 200 }));
  await queue.report(claimed.map((claim) => delivered(claim, 2_000)));
  expect(await look()).toEqual(numbers(1, 200).map((n) => [n, 'delivered']));
  await queue.enqueue(numbers(201, 2_700).map((n) => newDelivery(n, { createdAtMs: n })));
  expect(await look()).toEqual(numbers(201, 2_700).map((n) => [n, 'pending']));
});

test('of a long log the newest are followed, and everything that is new', async () => {
  const { queue, look } = opened();
  await queue.enqueue(numbers(1, 10_500).map((n) => newDelivery(n, { createdAtMs: n })));
  expect((await look()).length).toBe(10_000);
  await queue.enqueue(numbers(10_501, 21_600).map((n) => newDelivery(n, { createdAtMs: n })));
  expect(await look()).toEqual(numbers(10_501, 21_600).map((n) => [n, 'pending']));
});
