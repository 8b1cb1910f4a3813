import { runAccountsFollower } from '../../accounts/rows/follower.ts';
import type { Job } from '../threads/job.ts';

/**
 * Keeps the rows of accounts up to date, in one of the processes at a time. Every process can do it, whatever its roles, since
 * all of them read the rows. It has a thread of its own, so that its writes do not delay the API's event loop.
 */
export const accounts: Job<undefined> = ({ engines, clock, log, holder, signal }) =>
  runAccountsFollower({
    store: engines.store(),
    tables: engines.accounts(),
    coordination: engines.coordination(),
    clock,
    log,
    holder,
    signal,
  });
