import { FuelError } from '../../base/errors.ts';
import { world } from '../../base/world.ts';
import { type AccountsFollowerOptions, runAccountsFollower } from './follower.ts';
import { isAtEnd } from './progress.ts';
import { readProgress } from './read-rows.ts';

/** The longest wait without any progress. */
const MAX_STILL_MS = 10_000;
const LOOKS_EVERY_MS = 20;

export interface CatchUpOptions extends Omit<AccountsFollowerOptions, 'signal'> {
  readonly onProgress?: (text: string) => void;
}

/**
 * Waits until the rows have every event that is in the log now, for a command. Without a process that follows the log, it
 * follows the log itself. Rejects with `REFUSED` after 10 s without progress.
 */
export async function catchUpAccounts(options: CatchUpOptions): Promise<void> {
  const { store, tables } = options;
  const progress = await readProgress(tables);
  if (progress !== undefined && (await isAtEnd(progress, options))) return;
  const end = await store.head();
  const ending = new AbortController();
  const following = runAccountsFollower({ ...options, signal: ending.signal });
  try {
    await Promise.race([following, reached(end, options)]);
  } finally {
    ending.abort();
    await following;
  }
}

async function reached(end: number, options: CatchUpOptions): Promise<void> {
  const { tables, onProgress } = options;
  let before: number | undefined;
  for (let stillMs = 0; stillMs < MAX_STILL_MS; stillMs += LOOKS_EVERY_MS) {
    const progress = await readProgress(tables);
    if (progress !== undefined && progress.reached >= end && (await isAtEnd(progress, options))) return;
    if (progress?.reached !== before) stillMs = 0;
    before = progress?.reached;
    onProgress?.(`applying account events: at position ${before ?? 0} of ${end}`);
    await world.sleep(LOOKS_EVERY_MS);
  }
  throw new FuelError(
    'REFUSED',
    `the rows of accounts have stayed at position ${before ?? 0} of ${end} for ${MAX_STILL_MS / 1000} s. See \`fuel projection status\``,
  );
}
