import { once } from 'node:events';
import { join } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import type { ClaimedDelivery, DeliveryState, NewDelivery } from '../../../src/push/queue/delivery.ts';
import type { ClaimOptions, DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import type { FakeClock } from '../fake-clock.ts';
import type { ClaimedLog, ClaimerData } from './claim-deliveries.ts';
import { claimOptions } from './deliveries.ts';

const CLAIMER = join(import.meta.dirname, 'claim-deliveries.ts');
const CLAIMED_WITHIN_MS = 4_000;

export interface QueueUnderTest {
  /** Empty. */
  readonly queue: DeliveryQueue;
  /** Another opening of the same log, as another process has it. */
  readonly again: () => DeliveryQueue;
  /** The queue's. */
  readonly clock: FakeClock;
}

export interface SharedQueueUnderTest extends QueueUnderTest {
  /** What `claimElsewhere` opens. */
  readonly log: ClaimedLog;
}

/**
 * Another opening of the log, on a separate thread and connection. The function that it returns has it claim what
 * is due by `nowMs`, at most `limit`, while the calling thread waits; it returns the ids.
 */
export async function claimElsewhere(
  log: ClaimedLog,
): Promise<(nowMs: number, limit: number) => readonly string[]> {
  const { port1, port2 } = new MessageChannel();
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const data: ClaimerData = { log, port: port2, answered };
  const worker = new Worker(CLAIMER, { workerData: data, transferList: [port2] });
  onTestFinished(async () => void (await worker.terminate()));
  await once(worker, 'message');
  return (nowMs, limit) => {
    Atomics.store(answered, 0, 0);
    port1.postMessage({ nowMs, limit });
    if (Atomics.wait(answered, 0, 0, CLAIMED_WITHIN_MS) === 'timed-out')
      throw new Error('nothing was claimed');
    return receiveMessageOnPort(port1)?.message as string[];
  };
}

/** A queue with what a test says most often about it; closed, with its other openings, when the test is over. */
export interface OpenedQueue {
  readonly queue: DeliveryQueue;
  readonly clock: FakeClock;
  readonly second: () => DeliveryQueue;
  readonly claim: (nowMs: number, overrides?: Partial<ClaimOptions>) => Promise<readonly ClaimedDelivery[]>;
  /** The only one that is due. */
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
    claim: (nowMs, overrides) => queue.claim(claimOptions(nowMs, overrides)),
    claimOne: async (nowMs) => {
      const [claimed, ...more] = await queue.claim(claimOptions(nowMs));
      if (claimed === undefined || more.length > 0) throw new Error('not exactly one delivery is due');
      return claimed;
    },
    stateOf: async ({ id }) => (await queue.find(id))?.state,
  };
}
