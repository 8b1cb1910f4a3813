import { hostname } from 'node:os';

/**
 * Whether a process that was seen lately may still run. One of this machine that was killed is known to be gone
 * before its last report grows old.
 */
export function mayBeAlive(candidate: { readonly host: string; readonly pid: number }): boolean {
  if (candidate.host !== hostname()) return true;
  try {
    process.kill(candidate.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
