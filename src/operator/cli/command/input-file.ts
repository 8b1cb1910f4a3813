import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { FuelError } from '../../../base/errors.ts';

const READ_BYTES = 256 * 1024;

/** The bytes of a file, or of standard input (`-`), until the signal aborts. Throws `REFUSED` if it can't be read. */
export async function openInput(file: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
  if (file === '-') return addAbortSignal(signal, process.stdin);
  await requireReadable(file);
  return addAbortSignal(signal, createReadStream(file, { highWaterMark: READ_BYTES }));
}

async function requireReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
    if (!(await stat(file)).isDirectory()) return;
  } catch (cause) {
    throw new FuelError('REFUSED', `${file} can't be read`, { cause });
  }
  throw new FuelError('REFUSED', `${file} is a folder: name a file`);
}
