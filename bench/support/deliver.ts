import { setTimeout as sleep } from 'node:timers/promises';
import type { Engines } from '../../src/service/engines/engines.ts';
import { linesOf } from './fresh-lines.ts';
import { importSample } from './import-sample.ts';
import type { Arrival } from './receiver.ts';
import type { Receivers } from './receivers.ts';
import type { WebhookTransaction } from './webhook-sample.ts';

const MAX_SETTLE_MS = 60_000;
const MAX_COUNTED = 1_000_000;

/** Imports transactions while the service runs. Resolves when each delivery has arrived once and is recorded. */
export async function deliver(
  engines: Engines,
  receivers: Receivers,
  transactions: readonly WebhookTransaction[],
): Promise<readonly Arrival[]> {
  const input = linesOf(transactions.map(({ event }) => event));
  await importSample({ store: engines.store(), input, lines: transactions.length });
  const arrivals = await receivers.takeExactly(new Set(transactions.map(({ deliveryId }) => deliveryId)));
  await settled(engines);
  await nothingCameAgain(engines, receivers);
  return arrivals;
}

/**
 * Checks that nothing came again. A retry arrives half a minute late; this says why its first attempt did not count.
 */
async function nothingCameAgain(engines: Engines, receivers: Receivers): Promise<void> {
  const again = await receivers.take(0);
  const [first] = again;
  if (first === undefined) return;
  const attempts = (await engines.queue().find(first.id))?.attempts ?? [];
  const told = attempts.map(({ durationMs, outcome }) =>
    outcome.ok
      ? `delivered in ${durationMs} ms`
      : `${outcome.kind} after ${durationMs} ms: ${outcome.detail}`,
  );
  throw new Error(`${again.length} deliveries came again, one of them after: ${told.join('; ')}`);
}

/** Waits for the work after the last arrival, so that it does not slow down the next run. */
async function settled(engines: Engines): Promise<void> {
  const head = await engines.store().head();
  for (const deadline = Date.now() + MAX_SETTLE_MS; ; ) {
    const { pending } = await engines.queue().backlog({ nowMs: Date.now(), limit: MAX_COUNTED });
    const { deliveries: failed } = await engines.queue().page({ state: 'failed' }, { limit: 1 });
    if (failed.length > 0) throw new Error('deliveries failed');
    const projectedTo = (await engines.view().checkpoint())?.position ?? 0;
    if (pending === 0 && projectedTo >= head) return;
    if (Date.now() > deadline) throw new Error(`${pending} deliveries are still pending`);
    await sleep(50);
  }
}

/** Returns the deliveries a second, from the first arrival to the last. */
export function rateOf(arrivals: readonly Arrival[]): number {
  const times = arrivals.map(({ atMs }) => atMs).sort((a, b) => a - b);
  return ((times.length - 1) * 1_000) / ((times.at(-1) ?? 0) - (times[0] ?? 0));
}
