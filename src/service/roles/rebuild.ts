import { retryWhileUnavailable } from '../../base/retry.ts';
import { rebuildTransactions } from '../../pull/view/build/rebuild.ts';
import type { Job } from '../threads/job.ts';

/** Builds another view beside the served one, since records are rendered otherwise now. */
export const rebuild: Job<undefined> = async ({ engines, clock, log, holder, signal }) => {
  log.info('records are rendered otherwise now: a new view is built, and this one is served until then');
  const author = { actor: 'system', command: 'fuel serve' };
  const parts = {
    ...{ store: engines.store(), view: engines.view(), coordination: engines.coordination() },
    ...{ clock, log, holder: `${holder}-rebuild`, signal, author },
    reason: 'records are rendered otherwise now',
    accept: true,
  };
  const retry = { log, signal, component: 'rebuild' };
  const result = await retryWhileUnavailable(
    (onProgress) => rebuildTransactions({ ...parts, onProgress }),
    retry,
  );
  if (result?.outcome === 'switched') log.info({ position: result.position }, 'the new view is served');
};
