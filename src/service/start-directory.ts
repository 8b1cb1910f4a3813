import { Directory } from '../accounts/directory/fold/directory.ts';
import { LiveDirectory, type LiveDirectoryOptions } from '../accounts/directory/live-directory.ts';
import { aborted } from '../base/pause.ts';
import type { Engines } from './engines/engines.ts';
import { running, type StartedParts } from './started-parts.ts';

type DirectoryParts = Pick<LiveDirectoryOptions, 'clock' | 'log' | 'onMoved'> & {
  readonly engines: Engines;
  readonly parts: StartedParts;
  /** Aborts the wait. */
  readonly signal: AbortSignal;
};

/**
 * Starts the directory of the main thread, and waits until it has caught up. Rejects with the error that ends it, or with
 * the signal's reason.
 */
export async function startDirectory({
  engines,
  parts,
  signal,
  ...options
}: DirectoryParts): Promise<LiveDirectory> {
  const following = new AbortController();
  const live = new LiveDirectory({
    store: engines.store(),
    directory: new Directory(),
    stored: engines.directory(),
    ...options,
    signal: following.signal,
  });
  parts.add(
    'directory',
    running(() => live.run(), following),
  );
  await Promise.race([live.whenCaughtUp, parts.failed, aborted(signal)]);
  signal.throwIfAborted();
  return live;
}
