import { renameSync, statSync } from 'node:fs';

/** Which file this is, whatever its name becomes; `undefined` where there is none. */
export function idOfFile(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * Renames a damaged file, with its log, so that another can take its place; returns its new name. `undefined` where the
 * file with this id has gone from its place already: another process or thread was first. Where that is so at this very
 * moment, its new file is put aside too, and both find the next one.
 */
export function putAside(path: string, fileId: number | undefined): string | undefined {
  if (fileId === undefined || idOfFile(path) !== fileId) return undefined;
  const aside = `${path}.damaged-${new Date().toISOString().replace(/[-:]|\..*/g, '')}-${fileId}`;
  if (!renamed(path, aside)) return undefined;
  for (const part of ['-wal', '-shm']) renamed(`${path}${part}`, `${aside}${part}`);
  return aside;
}

function renamed(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}
