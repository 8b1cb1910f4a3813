import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a file for its owner alone, whole and for good, also through a power cut; never replaces one. Of several
 * processes at once one makes it. Returns whether this call did.
 */
export function writeOnce(path: string, text: string): boolean {
  const temporary = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  syncFolder(dirname(path));
  return true;
}

/** So that the file's name is not lost. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
