import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type {
  ClaimedDelivery,
  ClaimOptions,
  DeliveryQueue,
  DeliveryState,
  NewDelivery,
} from '../../src/delivery/delivery-queue.ts';
import { claimOptions } from './deliveries.ts';
import type { FakeClock } from './fake-clock.ts';

const CLAIMER = join(import.meta.dirname, 'claim-deliveries.ts');

export interface QueueUnderTest {
  /** Empty. */
  readonly queue: DeliveryQueue;
  /** Another opening of the same log, as another process has it. */
  readonly again: () => DeliveryQueue;
  /** The queue's. */
  readonly clock: FakeClock;
}

export interface SharedQueueUnderTest extends QueueUnderTest {
  /** Another process claims what is due by `nowMs`, at most `limit`, while this one stands still; gives the ids. */
  readonly claimElsewhere: (nowMs: number, limit: number) => readonly string[];
}

/** `log` is what `claim-deliveries.ts` opens: the path of a file, or URL and name of a database. */
export function claimElsewhere(
  log: Readonly<Record<string, string>>,
): SharedQueueUnderTest['claimElsewhere'] {
  return (nowMs, limit) => {
    const given = [CLAIMER, JSON.stringify(log), String(nowMs), String(limit)];
    return JSON.parse(execFileSync(process.execPath, given, { encoding: 'utf8' })) as string[];
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
