import { runProjector } from '../../pull/view/projector.ts';
import { sealLog } from '../../seals/seal-log.ts';
import type { Job } from '../threads/job.ts';
import { startJob } from '../threads/start-job.ts';

/**
 * How long the projector gathers events into a batch. Under constant load, pages show a transaction this much later.
 */
const GATHER_MS = 20;
const REBUILD_MEMORY = { youngMb: 32, oldMb: 256 };

/** The role `projector`. It has a thread of its own, since its synchronous I/O must not delay the API's event loop. */
export const projector: Job<undefined> = async (context) => {
  const { engines, log, clock, holder, signal } = context;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  let rebuilding: Promise<void> | undefined;
  /**
   * Rebuilds in another thread, so that this one keeps the served view up to date. If it fails, that view stays served.
   */
  const rebuild = (): void => {
    const options = { job: 'rebuild', log: { role: 'rebuild' }, memory: REBUILD_MEMORY, signal: until };
    rebuilding ??= startJob(context, options).ended.catch((error: unknown) =>
      log.error({ err: error }, 'the new view could not be built: run fuel projection rebuild transactions'),
    );
  };
  // Sealing runs concurrently with the view, which it delays by at most one batch.
  const sealing = sealLog({
    ...context,
    store: engines.store(),
    coordination: engines.coordination(),
    signal: until,
  });
  try {
    await runProjector({
      store: engines.store(),
      view: engines.view(),
      coordination: engines.coordination(),
      clock,
      log,
      holder,
      signal,
      gatherMs: engines.embedded.includes('view') ? 0 : GATHER_MS,
      onOlderRendering: rebuild,
    });
  } finally {
    ended.abort();
    await rebuilding;
    await sealing;
  }
};
