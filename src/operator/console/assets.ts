import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly type: string;
  readonly body: string;
  readonly etag: string;
}

const FILES = {
  '/console/console.css': { type: 'text/css', file: new URL('./assets/console.css', import.meta.url) },
  '/console/console.js': { type: 'text/javascript', file: new URL('./assets/console.js', import.meta.url) },
  '/console/idiomorph.js': {
    type: 'text/javascript',
    file: new URL(import.meta.resolve('idiomorph/dist/idiomorph.min.js')),
  },
} as const;

let read: ReadonlyMap<string, Asset> | undefined;

/** The files of the console, by path; read when first asked for. */
export function assetAt(path: string): Asset | undefined {
  read ??= new Map(
    Object.entries(FILES).map(([at, { type, file }]) => {
      const body = readFileSync(fileURLToPath(file), 'utf8');
      return [at, { type, body, etag: etagOf(body) }];
    }),
  );
  return read.get(path);
}

export function etagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url').slice(0, 22)}"`;
}
