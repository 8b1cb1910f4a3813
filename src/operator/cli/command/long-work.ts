import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { FuelError } from '../../../base/errors.ts';
import { abortOnInterrupt, type Output } from './output.ts';

const READ_BYTES = 256 * 1024;
const SHOWN_EVERY_MS = 100;

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
export async function longWork(
  out: Output,
  options: { readonly again: string; readonly names?: Readonly<Record<string, string>> },
  work: (parts: LongWork) => Promise<object>,
): Promise<number> {
  const { names = {} } = options;
  const signal = abortOnInterrupt();
  const progress = progressLine();
  const endLine = (): void => progress.end();
  let isRefused = false;
  const onRefused = (what: string | number, reason: string): void => {
    isRefused = true;
    endLine();
    out.note(`${what}: ${reason}`);
  };
  const onProgress = (counts: object): void => progress.show(countsText(counts, names));
  const counts = await work({ signal, onRefused, onProgress, endLine }).finally(endLine);
  out.result(counts, countsText(counts, names));
  if (signal.aborted) out.note(`interrupted: ${options.again} to continue`);
  return isRefused || signal.aborted ? 1 : 0;
}

/** `recorded 5, unchanged 0, refused 1`. */
function countsText(counts: object, names: Readonly<Record<string, string>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${names[name] ?? name} ${count}`)
    .join(', ');
}

/** One line on standard error that is overwritten as work proceeds; prints nothing if that is not a terminal. */
export function progressLine() {
  let shownAtMs = 0;
  let shown = false;
  return {
    show(text: string): void {
      const now = Date.now();
      if (!process.stderr.isTTY || now - shownAtMs < SHOWN_EVERY_MS) return;
      shownAtMs = now;
      shown = true;
      process.stderr.write(`\r\u001b[K${text}`);
    },
    end(): void {
      if (shown) process.stderr.write('\r\u001b[K');
    },
  };
}

/** The bytes of a file, or of standard input (`-`), until the signal aborts. */
export function openInput(file: string, signal: AbortSignal): AsyncIterable<Buffer> {
  if (file === '-') return addAbortSignal(signal, process.stdin);
  return addAbortSignal(signal, createReadStream(file, { highWaterMark: READ_BYTES }));
}

/** Throws `REFUSED` for a file that can't be read. */
export async function requireReadable(file: string): Promise<void> {
  if (file === '-') return;
  try {
    await access(file, constants.R_OK);
    if (!(await stat(file)).isDirectory()) return;
  } catch (cause) {
    throw new FuelError('REFUSED', `${file} can't be read`, { cause });
  }
  throw new FuelError('REFUSED', `${file} is a folder: name a file`);
}
