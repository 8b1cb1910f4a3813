import { renameSync, statSync } from 'node:fs';

/** Returns the id of a file, which a renaming does not change; `undefined` if there is no file. */
export function idOfFile(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * Renames a damaged file and its log, so that another file can take its place. Returns the new name; `undefined` if
 * another process or thread was first, so that the file with this id is gone. If that happens at this very moment, the
 * other's new file is put aside too, and both find the next one.
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
