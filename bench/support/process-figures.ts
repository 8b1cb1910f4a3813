import { readFileSync } from 'node:fs';

/** Returns the largest resident set that a living process has had, in MB; `undefined` once it has ended. */
export function peakResidentMb(pid: number): number | undefined {
  return statusMb(pid, 'VmHWM');
}

/** Returns the current resident set of a living process, in MB; `undefined` once it has ended. */
export function residentMb(pid: number): number | undefined {
  return statusMb(pid, 'VmRSS');
}

/**
 * Returns the processor time of all threads of a living process so far, in ms (the kernel counts in steps of 10 ms).
 */
export function processorTimeMs(pid: number): number {
  // The name, in parentheses, may contain spaces. User and system time are the 12th and 13th field after it.
  const fields =
    read(`/proc/${pid}/stat`)
      ?.replace(/^.*\) /s, '')
      .split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function statusMb(pid: number, field: 'VmHWM' | 'VmRSS'): number | undefined {
  const status = read(`/proc/${pid}/status`) ?? '';
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  return kilobytes === undefined ? undefined : (Number(kilobytes) * 1024) / 1e6;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
