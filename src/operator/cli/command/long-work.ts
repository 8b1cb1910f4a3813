import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { FuelError } from '../../../base/errors.ts';
import { silentLog } from '../../../base/log.ts';
import { startTracing } from '../../../base/tracing/start-tracing.ts';
import type { Session } from './command.ts';

const READ_BYTES = 256 * 1024;

export interface LongWork {
  readonly signal: AbortSignal;
  /** Names something that was refused, on one line. */
  readonly onRefused: (what: string | number, reason: string) => void;
  readonly onProgress: (counts: object) => void;
}

/**
 * Does work on many things that can be repeated until it is complete. Shows its counts while it proceeds and at its end, where
 * `names` can replace the name of a count. `next` returns the command that people will want to run next, if there is one.
 * Returns 1 if something was refused or the work was interrupted.
 */
export async function longWork<T extends object>(
  { out, signal, config }: Session,
  work: (parts: LongWork) => Promise<T>,
  {
    names = {},
    again = () => 'run the same command again',
    next = () => undefined,
  }: {
    readonly names?: Readonly<Record<string, string>>;
    readonly again?: () => string;
    readonly next?: (counts: T) => string | undefined;
  } = {},
): Promise<number> {
  const tracing = await startTracing(config, silentLog);
  let isRefused = false;
  const textOf = (counts: object): string =>
    Object.entries(counts)
      .map(([name, count]) => `${names[name] ?? name} ${count}`)
      .join(', ');
  const onRefused = (what: string | number, reason: string): void => {
    isRefused = true;
    out.note(`${what}: ${reason}`);
  };
  const onProgress = (soFar: object): void => out.progress(textOf(soFar));
  const counts = await work({ signal, onRefused, onProgress }).finally(() => tracing.stop());
  const command = next(counts);
  out.result(counts, textOf(counts) + (command === undefined ? '' : `. Next: ${command}`));
  if (signal.aborted) out.note(`Interrupted: ${again()} to continue`);
  return isRefused || signal.aborted ? 1 : 0;
}

/** Reads the bytes of a file, or of standard input (`-`), until the signal aborts. */
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
    throw new FuelError('REFUSED', `Can't read ${file}`, { cause });
  }
  throw new FuelError('REFUSED', `Can't read ${file}: it is a folder`);
}
