import type { WebhookHealth } from '../deliveries/queue/delivery-queue.ts';
import type { DeliveryLogCopy, StoredDelivery, StoredStreak } from '../deliveries/queue/log-copy.ts';
import { sameJson } from '../domain/values/same-json.ts';
import { OtherLog } from './other-log.ts';

const HEALTHY: WebhookHealth = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };

/** Gives deliveries their place in the store that the log shall belong to. */
export type Relocate = (deliveries: readonly StoredDelivery[]) => Promise<readonly StoredDelivery[]>;

export interface DeliveryCopyOptions {
  readonly source: DeliveryLogCopy;
  /** Has adopted the source's name. */
  readonly target: DeliveryLogCopy;
  readonly relocate: Relocate;
  readonly onProgress: (step: 'deliveries compared' | 'deliveries copied', done: number) => void;
}

export interface DeliveryCopy {
  /** Deliveries found in the target as they are in the source. */
  readonly deliveries: number;
  /** What is not the same, a line each. */
  readonly faults: readonly string[];
}

/**
 * Makes the target's log what the source's is, and reads it back. What stands there already as it should is left
 * as it is, so that a copy that was interrupted goes on quickly.
 */
export async function copyDeliveries(options: DeliveryCopyOptions): Promise<DeliveryCopy> {
  const { source, target, onProgress } = options;
  for await (const transactionIds of source.withdrawals()) await target.storeWithdrawals(transactionIds);
  for await (const runs of source.streaks()) await target.storeStreaks(runs);
  let copied = 0;
  for await (const { wanted, standing } of pairs(options)) {
    const differing = wanted.filter((delivery) => !sameJson(delivery, standing.get(delivery.id)));
    if (differing.length > 0) await target.store(differing);
    copied += wanted.length;
    onProgress('deliveries copied', copied);
  }
  return verify(options);
}

/** Gives every delivery of the log its place by `relocate`; says how many were moved. */
export async function relocateDeliveries(log: DeliveryLogCopy, relocate: Relocate): Promise<number> {
  let moved = 0;
  for await (const deliveries of log.deliveries()) {
    const placed = await relocate(deliveries);
    const changed = placed.filter(({ position }, index) => position !== deliveries[index]?.position);
    if (changed.length > 0) await log.store(changed);
    moved += changed.length;
  }
  return moved;
}

/** What the target shall hold, batch by batch, beside what it holds of the same range of ids. */
async function* pairs({ source, target, relocate }: DeliveryCopyOptions): AsyncGenerator<{
  readonly wanted: readonly StoredDelivery[];
  readonly standing: ReadonlyMap<string, StoredDelivery>;
}> {
  const other = new OtherLog(target.deliveries());
  try {
    for await (const deliveries of source.deliveries()) {
      const wanted = await relocate(deliveries);
      yield { wanted, standing: await other.upTo(wanted.at(-1)?.id) };
    }
    yield { wanted: [], standing: await other.upTo(undefined) };
  } finally {
    await other.close();
  }
}

async function verify(options: DeliveryCopyOptions): Promise<DeliveryCopy> {
  const faults: string[] = [];
  let equal = 0;
  for await (const { wanted, standing } of pairs(options)) {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const delivery of wanted) {
      const found = standing.get(delivery.id);
      if (sameJson(delivery, found)) equal++;
      else faults.push(`delivery ${delivery.id} ${found === undefined ? 'is not in the target' : 'differs'}`);
    }
    for (const id of standing.keys()) if (!ids.has(id)) faults.push(`delivery ${id} is in the target only`);
    options.onProgress('deliveries compared', equal);
  }
  return {
    deliveries: equal,
    faults: [...faults, ...(await withdrawalFaults(options)), ...(await runFaults(options))],
  };
}

async function withdrawalFaults({ source, target }: DeliveryCopyOptions): Promise<string[]> {
  const wanted = new Set<number>();
  for await (const ids of source.withdrawals()) for (const id of ids) wanted.add(id);
  const faults: string[] = [];
  for await (const ids of target.withdrawals()) {
    for (const id of ids) {
      if (!wanted.delete(id)) faults.push(`the withdrawal of transaction ${id} is in the target only`);
    }
  }
  return [...faults, ...[...wanted].map((id) => `the withdrawal of transaction ${id} is not in the target`)];
}

async function runFaults({ source, target }: DeliveryCopyOptions): Promise<string[]> {
  const [wanted, standing] = [await runsOf(source), await runsOf(target)];
  const prefixes = new Set([...wanted.keys(), ...standing.keys()]);
  return [...prefixes]
    .filter((prefix) => !sameJson(wanted.get(prefix) ?? HEALTHY, standing.get(prefix) ?? HEALTHY))
    .map((prefix) => `the run of failures of key ${prefix} differs`);
}

async function runsOf(log: DeliveryLogCopy): Promise<Map<StoredStreak['prefix'], WebhookHealth>> {
  const found = new Map<string, WebhookHealth>();
  for await (const runs of log.streaks()) for (const { prefix, health } of runs) found.set(prefix, health);
  return found;
}
