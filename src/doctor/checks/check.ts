import { reasonOf } from '../../errors.ts';

export interface Finding {
  readonly ok: boolean;
  readonly detail: string;
  /** What to do, as a command or an instruction; `null` where it is right. */
  readonly do: string | null;
}

export interface CheckResult extends Finding {
  readonly check: string;
}

/** Names in one finding; the others are counted. */
const MAX_NAMED = 5;

export function right(detail: string): Finding {
  return { ok: true, detail, do: null };
}

export function wrong(detail: string, remedy: string): Finding {
  return { ok: false, detail, do: remedy };
}

/** `a, b, c, …` */
export function some(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(', ') + (names.length > MAX_NAMED ? ', …' : '');
}

/** What the work finds; where it fails or does not end in time, that is the finding, with this remedy. */
export async function within(
  limitMs: number,
  remedy: string,
  work: () => Finding | Promise<Finding>,
): Promise<Finding> {
  const late = Promise.withResolvers<Finding>();
  const timer = setTimeout(
    () => late.resolve(wrong(`no answer within ${limitMs / 1000} s`, remedy)),
    limitMs,
  );
  try {
    return await Promise.race([Promise.resolve().then(work), late.promise]);
  } catch (error) {
    const { cause } = error as Error;
    const why =
      cause instanceof Error && !reasonOf(error).includes(cause.message) ? ` (${cause.message})` : '';
    return wrong(`${reasonOf(error)}${why}`, remedy);
  } finally {
    clearTimeout(timer);
  }
}
