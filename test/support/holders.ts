import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Returns every file of any kind in the folder and below that contains one of the texts. */
export function holders(folder: string, ...texts: readonly string[]): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .filter((name) => {
      const bytes = readFileSync(join(folder, name));
      return texts.some((text) => bytes.includes(text));
    });
}
