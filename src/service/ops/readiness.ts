import type { RowsFreshness } from '../../accounts/rows/freshness.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import type { EngineHealth } from '../engines/engine-health.ts';
import type { Readiness } from './ops-server.ts';

/** True if a condition holds, otherwise what is missing. */
type Condition = true | string;

export interface ReadinessConditions {
  /** The rows of accounts, by which requests and attempts are judged. */
  readonly rows: Pick<RowsFreshness, 'condition'>;
  readonly isStopping: boolean;
  readonly engines: EngineHealth;
  /** The thread of the role `webhooks`, if this process has it: what its subscription lacks, and whether it was ready before. */
  readonly subscription: { readonly missing: string | undefined; readonly wasReady: boolean } | undefined;
  /** Reads the disk, if a part of the store is on this machine. */
  readonly disk: (() => Promise<Pick<DiskState, 'refusal'>>) | undefined;
  /** True if this process has a part that writes. Pulls are answered even if the disk refuses commits. */
  readonly writes: boolean;
}

/**
 * Returns the readiness of the process. An unavailable event store and a broken subscription are shown at once, but the
 * process stays ready until the rows of accounts are too old, since it can serve until then. A process that is stopping is not
 * ready, although it still answers what arrives.
 */
export async function readiness(conditions: ReadinessConditions): Promise<Readiness> {
  const { rows, isStopping, subscription, disk, writes, engines } = conditions;
  const all: Record<string, Condition> = {
    accounts_up_to_date: rows.condition,
    not_stopping: !isStopping || 'the process is stopping',
    ...(subscription && { subscription_connected: subscription.missing ?? true }),
    ...(disk && { disk: (await disk()).refusal ?? true }),
    ...(await engines.state()),
  };
  const ignored = new Set(engines.logs);
  if (!writes) ignored.add('disk');
  if (subscription?.wasReady === true) ignored.add('subscription_connected');
  return readinessOf(
    Object.entries(all).every(([name, condition]) => condition === true || ignored.has(name)),
    all,
  );
}

/** Formats conditions as the operations listener shows them, with the reason of each one that does not hold. */
export function readinessOf(ready: boolean, conditions: Readonly<Record<string, Condition>>): Readiness {
  const entries = Object.entries(conditions);
  const missing = entries.filter((entry): entry is [string, string] => entry[1] !== true);
  const checks = Object.fromEntries(entries.map(([name, condition]) => [name, condition === true]));
  return missing.length === 0 ? { ready, checks } : { ready, checks, reasons: Object.fromEntries(missing) };
}
