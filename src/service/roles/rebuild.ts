import { retryWhileUnavailable } from '../../base/retry.ts';
import { rebuildTransactions } from '../../pull/view/build/rebuild.ts';
import type { Job } from '../threads/job.ts';

const REASON = 'the rendering of records has changed';

/** Builds a new view while the old one keeps serving, after the rendering of records has changed. */
export const rebuild: Job<undefined> = async ({ engines, clock, log, holder, signal }) => {
  log.info(`${REASON}: a new view is built while the present one keeps serving`);
  const author = { actor: 'system', command: 'fuel serve' };
  const parts = {
    store: engines.store(),
    view: engines.view(),
    coordination: engines.coordination(),
    clock,
    log,
    holder: `${holder}-rebuild`,
    signal,
    author,
    reason: REASON,
  };
  const retry = { log, signal, component: 'rebuild' };
  const result = await retryWhileUnavailable(
    (onProgress) => rebuildTransactions({ ...parts, onProgress }),
    retry,
  );
  if (result?.outcome === 'switched') log.info({ position: result.position }, 'the new view is served');
};
