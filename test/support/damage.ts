import { closeSync, openSync, statSync, writeSync } from 'node:fs';

/** Of an embedded file. */
export const PAGE_BYTES = 8_192;

/** Writes zeros over bytes of a file: in a file that is shorter, up to its end. */
export function overwrite(path: string, from: number, to: number = statSync(path).size): void {
  const bytes = Math.max(0, to - from);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes), 0, bytes, from);
  closeSync(file);
}
