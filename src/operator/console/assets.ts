import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly type: string;
  readonly body: string;
  readonly etag: string;
}

const FILES = [
  ['/console/console.css', './assets/console.css'],
  ['/console/console.js', './assets/console.js'],
  ['/console/idiomorph.js', 'idiomorph/dist/idiomorph.min.js'],
] as const;

let read: ReadonlyMap<string, Asset> | undefined;

/** Returns the file of the console at a path. The files are read at the first request for one. */
export function assetAt(path: string): Asset | undefined {
  read ??= new Map(
    FILES.map(([at, file]) => {
      const body = readFileSync(fileURLToPath(import.meta.resolve(file)), 'utf8');
      return [at, { type: at.endsWith('.css') ? 'text/css' : 'text/javascript', body, etag: etagOf(body) }];
    }),
  );
  return read.get(path);
}

export function etagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url').slice(0, 22)}"`;
}
