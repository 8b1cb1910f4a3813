import { world } from '../../base/world.ts';

/** Whether a process that reported lately may still run. On this machine the operating system knows. */
export function mayBeAlive(candidate: { readonly host: string; readonly pid: number }): boolean {
  if (candidate.host !== world.self().host) return true;
  try {
    process.kill(candidate.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
