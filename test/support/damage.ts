import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';

/** The offset of the page size in SQLite's file format. */
const PAGE_SIZE_AT = 16;

/** Overwrites bytes of a file with zeros. In a shorter file it stops at the end. */
export function overwrite(path: string, from: number, to: number = statSync(path).size): void {
  const bytes = Math.max(0, to - from);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes), 0, bytes, from);
  closeSync(file);
}

/** Returns the page size of an embedded file. */
export function pageBytesOf(path: string): number {
  return readFileSync(path).readUInt16BE(PAGE_SIZE_AT);
}
