import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { unpackAccount } from '../../accounts/directory/fold/packed-account.ts';
import { world } from '../../base/world.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';

/** The time that an operator needs to extend a contract. */
const SOON_MS = 14 * DAY_MS;
const MAX_SLICE_MS = 5;

/**
 * Counts the accounts whose current and future charging profiles all end within two weeks. Yields to the event loop.
 */
export async function endingAccounts(directory: Directory, nowMs: number): Promise<number> {
  let ending = 0;
  let sinceMs = world.elapsedMs();
  for (const { packed } of directory.states()) {
    if (packed !== undefined) {
      const { profiles, closed } = unpackAccount(packed);
      const ends = [...profiles.values()].map(({ toMs }) => toMs ?? Number.POSITIVE_INFINITY);
      const endMs = ends.reduce((last, end) => Math.max(last, end), nowMs);
      if (closed === null && endMs > nowMs && endMs <= nowMs + SOON_MS) ending += 1;
    }
    if (world.elapsedMs() - sinceMs < MAX_SLICE_MS) continue;
    await world.nextTurn();
    sinceMs = world.elapsedMs();
  }
  return ending;
}
