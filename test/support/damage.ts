import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';

/** Where an embedded file says how large its pages are: SQLite's file format. */
const PAGE_SIZE_AT = 16;

/** Writes zeros over bytes of a file: in a file that is shorter, up to its end. */
export function overwrite(path: string, from: number, to: number = statSync(path).size): void {
  const bytes = Math.max(0, to - from);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes), 0, bytes, from);
  closeSync(file);
}

/** Of an embedded file. */
export function pageBytesOf(path: string): number {
  return readFileSync(path).readUInt16BE(PAGE_SIZE_AT);
}
