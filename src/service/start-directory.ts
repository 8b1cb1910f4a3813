import { Directory } from '../accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../accounts/directory/live-directory.ts';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { aborted } from '../base/pause.ts';
import type { Engines } from './engines/engines.ts';
import { running, type StartedParts } from './started-parts.ts';

export interface DirectoryParts {
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly parts: StartedParts;
  readonly onMoved: (position: number) => void;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

/**
 * Starts the directory of the main thread, and waits until it has caught up. Rejects with the error that ends it, or with
 * the signal's reason.
 */
export async function startDirectory(options: DirectoryParts): Promise<LiveDirectory> {
  const { engines, clock, log, parts, onMoved, signal } = options;
  const following = new AbortController();
  const live = new LiveDirectory({
    store: engines.store(),
    directory: new Directory(),
    stored: engines.directory(),
    clock,
    log,
    signal: following.signal,
    onMoved,
  });
  parts.add(
    'directory',
    running(() => live.run(), following),
  );
  await Promise.race([live.whenCaughtUp, parts.failed, aborted(signal)]);
  signal.throwIfAborted();
  return live;
}
