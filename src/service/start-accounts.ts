import { RowsFreshness } from '../accounts/rows/freshness.ts';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../base/config/config.ts';
import type { Engines } from './engines/engines.ts';
import { running, type StartedParts } from './started-parts.ts';

/**
 * Starts to look at how fresh the rows of accounts are, which one of the processes keeps up to date, and waits until they are.
 * Rejects with the error of a part that fails meanwhile, or with the signal's reason.
 */
export async function startAccounts({
  config,
  engines,
  clock,
  parts,
  signal,
}: {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly parts: StartedParts;
  readonly signal: AbortSignal;
}): Promise<RowsFreshness> {
  const maxAgeMs = config.FUEL_DIRECTORY_MAX_AGE;
  const rows = new RowsFreshness({ tables: engines.accounts(), store: engines.store(), clock, maxAgeMs });
  await Promise.race([rows.untilFresh(signal), parts.failed]);
  signal.throwIfAborted();
  parts.add(
    'freshness of accounts',
    running((stopping) => rows.run(stopping)),
  );
  return rows;
}
