import { Directory } from '../../accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import type { SharedRows } from '../../accounts/directory/rows/shared-rows.ts';
import type { ListenPlace } from '../../base/listen.ts';
import { aborted } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { Certificate } from '../../pull/server/certificate.ts';
import { accessState, missingForAccess, Standing, whenReady } from '../ops/standing.ts';
import type { Job } from '../threads/job.ts';
import { createApiServer, GRACE_MS, type SharedApi } from './api-server.ts';

export interface ApiJobData {
  readonly place: ListenPlace;
  readonly pem: Certificate | undefined;
  readonly shared: SharedApi | undefined;
  readonly standing: SharedArrayBuffer;
  /** What the main thread's directory has started from, if anything. */
  readonly directory: SharedRows | undefined;
}

const READY_EVERY_MS = 1_000;

/** One more thread that answers the pull API: its own directory, view and listener on the port of the others. */
export const api: Job<ApiJobData> = async (
  context,
  { place, pem, shared, standing: memory, directory: started },
) => {
  const { config, engines, clock, log, signal, report } = context;
  const store = engines.store();
  const directory = new Directory();
  const following = new AbortController();
  const live = new LiveDirectory({
    ...{ store, directory, shared: started, clock, log, signal: following.signal },
    onMoved(position) {
      report({ kind: 'moved', position });
      reportReady();
    },
  });
  const standing = new Standing(memory);
  const conditions = { live, maxAgeMs: config.FUEL_DIRECTORY_MAX_AGE, store, standing };
  let reported: string | undefined = 'it starts';
  const reportReady = (): void => {
    const missing = missingForAccess(conditions);
    if (missing === reported) return;
    reported = missing;
    report({ kind: 'ready', missing });
  };
  const availability = () => accessState(conditions);
  const server = createApiServer({ ...context, directory, availability, pem, shared });
  context.onTold((renewed) => server.reload(renewed as Certificate));
  const judging = world.setInterval(reportReady, READY_EVERY_MS);
  const directoryEnded = live.run();
  try {
    await Promise.race([whenReady(conditions, signal), directoryEnded]);
    if (!signal.aborted) await server.listen(place);
    report({ kind: 'listening' });
    await Promise.race([aborted(signal), directoryEnded]);
  } finally {
    world.clearInterval(judging);
    await server.stop(GRACE_MS);
    following.abort();
    await directoryEnded.catch(() => undefined); // reported by the race
  }
};
