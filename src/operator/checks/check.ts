import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { reasonOf } from '../../base/errors.ts';
import { orLate } from '../../base/pause.ts';

export interface Finding {
  readonly ok: boolean;
  readonly detail: string;
  /** What to do, as a command or an instruction; `null` where it is right. */
  readonly do: string | null;
}

export interface CheckResult extends Finding {
  readonly check: string;
}

export function right(detail: string): Finding {
  return { ok: true, detail, do: null };
}

export function wrong(detail: string, remedy: string): Finding {
  return { ok: false, detail, do: remedy };
}

/** No second alarm about what is wrong with its causes. */
export function notChecked(causes: readonly string[]): Finding {
  return right(`not checked, because ${causes.join(' and ')} ${causes.length === 1 ? 'is' : 'are'} wrong`);
}

/** What to do where this user may not use a file or folder. */
export function asOwnerOf(path: string): string {
  return `run the service, and this command, as the user that owns it: ${ownerOf(path)}`;
}

/** Of the file, or of the nearest folder above it that this user can see. */
function ownerOf(path: string): string {
  try {
    const { uid } = statSync(path);
    const line = new RegExp(`^([^:]+):[^:]*:${uid}:`, 'm').exec(readFileSync('/etc/passwd', 'utf8'));
    return line?.[1] ?? `user id ${uid}`;
  } catch (error) {
    const above = dirname(path);
    if (above === path) return reasonOf(error);
    return ownerOf(above);
  }
}

/**
 * What the work finds; where it fails or does not end in time, that is the finding, with this remedy. What only another
 * user may do is left to that one.
 */
export async function within(
  limitMs: number,
  remedy: string,
  work: () => Finding | Promise<Finding>,
): Promise<Finding> {
  const late = () => wrong(`no answer within ${limitMs / 1000} s`, remedy);
  try {
    return await orLate(Promise.resolve().then(work), limitMs, late);
  } catch (error) {
    const { cause } = error as Error;
    const why =
      cause instanceof Error && !reasonOf(error).includes(cause.message) ? ` (${cause.message})` : '';
    const { code, path } = error as NodeJS.ErrnoException;
    return wrong(
      `${reasonOf(error)}${why}`,
      code === 'EACCES' && path !== undefined ? asOwnerOf(path) : remedy,
    );
  }
}
