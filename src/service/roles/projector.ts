import { storeIdentity } from '../../event-store/store-identity.ts';
import { runProjector } from '../../pull/view/projector.ts';
import { openSigner } from '../../seals/seal-key.ts';
import { runSealer } from '../../seals/sealer.ts';
import type { Job, JobContext } from '../threads/job.ts';
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
  const sealing = seal(context, until);
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

/** Beside the view, which nothing of it delays by more than a batch. A failure leaves the log unsealed, and is logged. */
async function seal({ config, engines, clock, log, holder }: JobContext, signal: AbortSignal): Promise<void> {
  const [store, coordination] = [engines.store(), engines.coordination()];
  try {
    const signer = openSigner(await storeIdentity(store, clock), config);
    if (signer === undefined)
      log.error('FUEL_SEAL_KEY is not set: the log is not sealed, and can not be proven later');
    else await runSealer({ store, coordination, signer, holder, clock, log, signal });
  } catch (error) {
    if (!signal.aborted) log.error({ err: error }, 'the log is not sealed any more: fuel audit verify');
  }
}
