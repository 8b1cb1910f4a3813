import { abortOnInterrupt, type Output } from './command.ts';
import { progressLine } from './progress.ts';

export interface LongWork {
  readonly signal: AbortSignal;
  /** Names what was refused, one line each. */
  readonly onRefused: (what: string | number, reason: string) => void;
  readonly onProgress: (counts: object) => void;
  /** Before something else is printed. */
  readonly endLine: () => void;
}

/**
 * Work on many things, in the order of which it can be repeated: shows its counts while it proceeds and at its end.
 * Returns 1 where something was refused, or it was interrupted.
 */
export async function longWork<C extends { readonly refused: number } | { readonly unreadable: number }>(
  out: Output,
  { again, names = {} }: { readonly again: string; readonly names?: Readonly<Record<string, string>> },
  work: (parts: LongWork) => Promise<C>,
): Promise<number> {
  const signal = abortOnInterrupt();
  const progress = progressLine();
  const endLine = (): void => progress.end();
  const onRefused = (what: string | number, reason: string): void => {
    endLine();
    out.note(`${what}: ${reason}`);
  };
  const onProgress = (counts: object): void => progress.show(countsText(counts, names));
  const counts = await work({ signal, onRefused, onProgress, endLine }).finally(endLine);
  out.result(counts, countsText(counts, names));
  if (signal.aborted) out.note(`interrupted: ${again} to continue`);
  const refused = 'refused' in counts ? counts.refused : counts.unreadable;
  return refused > 0 || signal.aborted ? 1 : 0;
}

/** `recorded 5, unchanged 0, refused 1`. */
function countsText(counts: object, names: Readonly<Record<string, string>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${names[name] ?? name} ${count}`)
    .join(', ');
}
