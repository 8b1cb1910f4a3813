import { backup, DatabaseSync } from 'node:sqlite';
import { orDamaged } from './errors.ts';

/** More pages than any file has: a copy in one step, so that a busy writer can't make it start over forever. */
const ALL_PAGES = 2 ** 31 - 1;

/** Writes a consistent copy of an embedded file to `target` while others use the file. */
export async function backupFile(source: string, target: string): Promise<void> {
  const db = new DatabaseSync(source, { readOnly: true });
  try {
    await backup(db, target, { rate: ALL_PAGES });
  } catch (error) {
    throw orDamaged(source, error);
  } finally {
    db.close();
  }
}
