import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** Flips bytes of a closed file from an offset on. */
export function flipBytes(path: string, from: number, count: number): void {
  const file = openSync(path, 'r+');
  const bytes = Buffer.alloc(count);
  readSync(file, bytes, 0, count, from);
  writeSync(
    file,
    bytes.map((byte) => byte ^ 0xff),
    0,
    count,
    from,
  );
  closeSync(file);
}

/** Flips bytes of an event's data, beginning at a text in it. */
export function flipData(path: string, text: string, count = 400): void {
  const at = readFileSync(path).indexOf(text);
  if (at < 0) throw new Error(`${path} does not hold ${text}`);
  flipBytes(path, at, count);
}

/** Flips the whole page of the file that contains the text. */
export function flipPage(path: string, text: string): void {
  const db = new DatabaseSync(path, { readOnly: true });
  const size = db.prepare('PRAGMA page_size').get()?.page_size as number;
  db.close();
  const page = Math.floor(readFileSync(path).indexOf(text) / size);
  flipBytes(path, page * size, size);
}
