import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import { type Author, newEvent } from '../../event-store/new-event.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import { type ProjectorOptions, runProjector, VIEW_NAME } from './projector.ts';

const PROGRESS_EVERY_MS = 100;

export interface RebuildOptions extends Omit<ProjectorOptions, 'holder' | 'signal'> {
  readonly author: Author;
  readonly onProgress: (progress: { readonly position: number; readonly target: number }) => void;
}

/**
 * Resets the view and fills it from the start of the log; returns when it has reached the end that the log had at the
 * call. Until then pages answer 503: clients would take a part of the list for the whole. The active projector does the
 * work, or this process where there is none.
 */
export async function rebuildTransactions(options: RebuildOptions): Promise<void> {
  const { store, view, clock, author } = options;
  const storeId = await storeIdentity(store, clock);
  const target = await store.head();
  await view.reset(storeId, target);
  const done = new AbortController();
  const projecting = runProjector({ ...options, holder: `rebuild-${randomUUID()}`, signal: done.signal });
  const watching = watchProgress(options, target, done.signal);
  try {
    await Promise.race([watching, projecting]);
  } finally {
    done.abort();
    await Promise.all([projecting, watching]);
  }
  const rebuilt = {
    type: 'ViewRebuilt',
    data: { view: VIEW_NAME, reason: 'asked for by the operator' },
  } as const;
  await store.append([
    { stream: OPERATIONS_STREAM, expected: 'any', events: [newEvent(rebuilt, author, clock.now())] },
  ]);
}

async function watchProgress(options: RebuildOptions, target: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const position = (await options.view.checkpoint())?.position ?? 0;
    options.onProgress({ position, target });
    if (position >= target) return;
    await sleep(PROGRESS_EVERY_MS);
  }
}
