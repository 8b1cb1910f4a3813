import { onTestFinished } from 'vitest';
import type { ClaimedDelivery, DeliveryState, NewDelivery } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import type { FakeClock } from '../fake-clock.ts';
import { type ClaimOptions, claimFrom, claimOptions } from './deliveries.ts';

export interface QueueUnderTest {
  /** Empty. */
  readonly queue: DeliveryQueue;
  /** Another opening of the same log, as another process has it. */
  readonly again: () => DeliveryQueue;
  /** The queue's. */
  readonly clock: FakeClock;
}

/** A queue with the calls that tests use most. It is closed, like its other openings, when the test is over. */
interface OpenedQueue {
  readonly queue: DeliveryQueue;
  readonly clock: FakeClock;
  readonly second: () => DeliveryQueue;
  readonly claim: (nowMs: number, overrides?: Partial<ClaimOptions>) => Promise<readonly ClaimedDelivery[]>;
  /** Claims the only delivery that is due. */
  readonly claimOne: (nowMs: number) => Promise<ClaimedDelivery>;
  readonly stateOf: (delivery: { readonly id: string }) => Promise<DeliveryState | undefined>;
}

export async function openQueue(
  open: () => Promise<QueueUnderTest>,
  enqueued: readonly NewDelivery[],
): Promise<OpenedQueue> {
  const { queue, again, clock } = await open();
  onTestFinished(() => queue.close());
  await queue.enqueue(enqueued);
  return {
    queue,
    clock,
    second: () => {
      const other = again();
      onTestFinished(() => other.close());
      return other;
    },
    claim: (nowMs, overrides) => claimFrom(queue, claimOptions(nowMs, overrides)),
    claimOne: async (nowMs) => {
      const [claimed, ...more] = await claimFrom(queue, claimOptions(nowMs));
      if (claimed === undefined || more.length > 0) throw new Error('not exactly one delivery is due');
      return claimed;
    },
    stateOf: async ({ id }) => (await queue.find(id))?.state,
  };
}
