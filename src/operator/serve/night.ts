import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import { retentionMs } from '../../base/config/config.ts';
import type { Job } from '../../service/threads/job.ts';
import { proveLog } from '../audit/prove-log.ts';
import { verifyLastDays } from '../verify/verify-last-days.ts';

/** One nightly verification; its result is what it repaired. */
export const night: Job<undefined> = async ({ config, engines, clock, log, signal, report }) => {
  const store = engines.store();
  const author = { actor: 'system', command: 'nightly verification' };
  try {
    const directory = await loadDirectory(store, engines.directory());
    const repaired = await verifyLastDays({
      store,
      view: engines.view(),
      queue: () => engines.queue(),
      accountIds: [...directory.accounts()].map(({ id }) => id),
      environment: config.FUEL_ENVIRONMENT,
      retentionMs: retentionMs(config),
      author,
      ...{ clock, log, signal },
    });
    report({ kind: 'result', value: repaired });
    await proveLog({ store, config, clock, log, author, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
};
