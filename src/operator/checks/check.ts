import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { reasonOf } from '../../base/errors.ts';
import { orLate } from '../../base/pause.ts';

/** What a check finds: that something is right, or what is not and what to do. */
export interface Finding {
  readonly ok: boolean;
  readonly detail: string;
  /** What to do, as a command or an instruction; `null` where it is right. */
  readonly do: string | null;
}

/** Something that is not right, as doctor and the console's overview show it. */
export interface Problem extends Finding {
  readonly do: string;
  /** The same for the same thing in every look. */
  readonly id: string;
  /** The words of a command after `fuel`. */
  readonly words: readonly string[];
  /** The console's page that says more; that of projections unless given. */
  readonly href?: string;
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

/** A problem that does not end before somebody acts; its command is what to do unless `do` says more. */
export function act(
  id: string,
  detail: string,
  words: readonly string[],
  more: { readonly do?: string; readonly href?: string } = {},
): Problem {
  return { ok: false, id, detail, words, do: `fuel ${words.join(' ')}`, ...more };
}

/** A problem that somebody else may have to repair, or that is over: it makes no check wrong. */
export function look(...of: Parameters<typeof act>): Problem {
  return { ...act(...of), ok: true };
}

/** One finding of several; `detail` is what is right. */
export function merged(problems: readonly Problem[], detail: string): Finding {
  const wrongs = problems.filter(({ ok }) => !ok);
  if (wrongs.length === 0)
    return right([detail, ...problems.map((each) => `${each.detail} (${each.do})`)].join('; '));
  const cures = new Set(wrongs.map((each) => each.do));
  return wrong(wrongs.map((each) => each.detail).join('; '), [...cures].join('; '));
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
