import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import { appendSteadily } from './append-steadily.ts';
import type { Receivers } from './receivers.ts';
import type { WebhookSetUp } from './webhook-sample.ts';

const PER_SECOND = 100;
const SECONDS = 10;
const WARM_UP = 500;

/** Measures from the call of `append` to the request at the receiver, for each counted event, in milliseconds. */
export async function appendToArrival(
  { config, next }: WebhookSetUp,
  receivers: Receivers,
): Promise<number[]> {
  const engines = await openEngines(config, systemClock);
  const load = async (count: number): Promise<number[]> => {
    const transactions = next(count);
    const appendedAtMs = await appendSteadily(engines.store(), transactions, { perSecond: PER_SECOND });
    const arrivals = await receivers.takeExactly(new Set(appendedAtMs.keys()));
    return arrivals.map(({ id, atMs }) => atMs - (appendedAtMs.get(id) ?? Number.NaN));
  };
  try {
    await load(WARM_UP);
    return await load(PER_SECOND * SECONDS);
  } finally {
    await engines.close();
  }
}
