import { runProjector } from '../../pull/view/projector.ts';
import { sealLog } from '../../seals/seal-log.ts';
import type { Job } from '../threads/job.ts';
import { startJob } from '../threads/start-job.ts';

/** Pages show a transaction at most this much later under constant load. */
const GATHER_MS = 20;
const REBUILD_MEMORY = { youngMb: 32, oldMb: 256 };

/** The role `projector`: its synchronous reads and writes must not delay the API's event loop. */
export const projector: Job<undefined> = async (context) => {
  const { engines, log, clock, holder, signal } = context;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  let rebuilding: Promise<void> | undefined;
  /** In another thread, so that this one keeps the served view up to date. A failure leaves that view served. */
  const rebuild = (): void => {
    const options = { job: 'rebuild', log: { role: 'rebuild' }, memory: REBUILD_MEMORY, signal: until };
    rebuilding ??= startJob(context, options).ended.catch((error: unknown) =>
      log.error({ err: error }, 'the new view could not be built: run fuel projection rebuild transactions'),
    );
  };
  // Beside the view, which it delays by a batch at most.
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
      ...{ clock, log, holder, signal },
      gatherMs: engines.embedded.includes('view') ? 0 : GATHER_MS,
      onOlderRendering: rebuild,
    });
  } finally {
    ended.abort();
    await rebuilding;
    await sealing;
  }
};
