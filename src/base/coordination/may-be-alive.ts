import { world } from '../world.ts';

/** True if a process that reported recently may still be running. On this machine the operating system is asked. */
export function mayBeAlive(candidate: { readonly host: string; readonly pid: number }): boolean {
  if (candidate.host !== world.self().host) return true;
  try {
    process.kill(candidate.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
