import { Directory } from '../../projections/directory.ts';
import { LiveDirectory } from '../accounts/directory/live-directory.ts';
import {
  type SharedSnapshot,
  SharingSource,
  sharedSnapshot,
} from '../accounts/directory/snapshots/shared.ts';
import { DIRECTORY_SNAPSHOT_VERSION } from '../accounts/directory/snapshots/snapshot.ts';
import type { Engines } from '../app.ts';
import type { Clock } from '../clock.ts';
import { storeIdentity } from '../event-store/store-identity.ts';
import type { Log } from '../log.ts';
import { aborted } from '../pause.ts';
import { retryWhileUnavailable } from '../retry.ts';
import type { StartedParts } from './started-parts.ts';

export interface DirectoryParts {
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly parts: StartedParts;
  /** Names this process among those that save snapshots. */
  readonly holder: string;
  readonly onMoved: (position: number) => void;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

export interface StartedDirectory {
  readonly live: LiveDirectory;
  /** What the process's other threads start from: the accounts are in memory once. `undefined` where there are none. */
  readonly snapshot: SharedSnapshot | undefined;
}

/**
 * Starts the directory of the main thread, and waits until it has caught up. Rejects with the error that ends it, or with
 * the signal's reason.
 */
export async function startDirectory(options: DirectoryParts): Promise<StartedDirectory> {
  const { engines, clock, log, parts, holder, onMoved, signal } = options;
  const following = new AbortController();
  const source = new SharingSource(engines.snapshots());
  const live = new LiveDirectory({
    store: engines.store(),
    directory: new Directory(),
    snapshots: source,
    saving: { snapshots: engines.snapshots(), coordination: engines.coordination(), holder },
    clock,
    log,
    signal: following.signal,
    onMoved,
  });
  parts.addRunning('directory', live.run(), following);
  await Promise.race([live.whenCaughtUp, parts.failed, aborted(signal)]);
  signal.throwIfAborted();
  return { live, snapshot: source.loaded ?? (await presentSnapshot(live, options)) };
}

async function presentSnapshot(
  live: LiveDirectory,
  { engines, clock, log, signal }: DirectoryParts,
): Promise<SharedSnapshot | undefined> {
  const retry = { log, signal, component: 'directory' };
  const storeId = await retryWhileUnavailable(() => storeIdentity(engines.store(), clock), retry);
  const { content } = live;
  if (content === undefined || storeId === undefined) return undefined;
  const header = { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position: content.position };
  return sharedSnapshot(header, content);
}
