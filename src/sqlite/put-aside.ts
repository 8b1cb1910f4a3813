import { linkSync, renameSync, statSync } from 'node:fs';

/** Which file this is, whatever its name becomes; `undefined` where there is none. */
export function idOfFile(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * Renames a damaged file, with its log, so that another can take its place; returns its new name. `undefined` where the
 * file with this id has gone from its place already: another process or thread was first.
 */
export function putAside(path: string, fileId: number | undefined): string | undefined {
  if (fileId === undefined || idOfFile(path) !== fileId) return undefined;
  const aside = `${path}.damaged-${new Date().toISOString().replace(/[-:]|\..*/g, '')}-${fileId}`;
  if (!renamed(path, aside)) return undefined;
  if (idOfFile(aside) !== fileId) {
    restore(aside, path);
    return undefined;
  }
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

/** The new file was taken, a moment after another process had made it. */
function restore(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // yet another was made meanwhile
  }
}
