import { retentionMs } from '../../base/config/config.ts';
import { gently } from '../../base/pause.ts';
import type { RunningProcess } from '../../service/service.ts';
import { proveLog } from '../audit/prove-log.ts';
import { type Repaired, verifyLastDays } from '../verify/verify-last-days.ts';

/**
 * One nightly verification, and the proof of what was sealed since the last one. It has half of the main thread, in steps of
 * some milliseconds, and stops when the signal aborts: then it rejects.
 */
export async function verifyNight(
  {
    engines,
    config,
    directory,
    clock,
    log,
  }: Pick<RunningProcess, 'engines' | 'config' | 'directory' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<Repaired> {
  const author = { actor: 'system', command: 'nightly verification' };
  const work = { store: engines.store(), clock, log, author, signal, rest: gently(signal) };
  const repaired = await verifyLastDays({
    ...work,
    view: () => engines.view(),
    queue: () => engines.queue(),
    accountIds: Iterator.from(directory.accounts()).map(({ id }) => id),
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
  });
  await proveLog({ ...work, config });
  return repaired;
}
