import { lstatSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FuelError } from '../errors.ts';

/** `folder` and `file` are what the service accepts; `closed folder` and `secret` are how they should be. */
export type OwnKind = 'folder' | 'closed folder' | 'file' | 'secret';

const MAY_WRITE = 0o022;
const MAY_READ_OR_WRITE = 0o066;
const MAY_DO_ANYTHING = 0o077;
const OTHERS = 0o007;
const MAY_PASS = 0o001;

/**
 * Returns why a file or folder must not be used. Returns `undefined` if it belongs to this user or root and is closed
 * to others, or if it does not exist. Others may list a folder whose files they can't read. A group that this process
 * is in may use it, since Kubernetes shares volumes that way (`fsGroup`).
 */
export function faultOfOwner(path: string, kind: OwnKind): string | undefined {
  const entry = lstatSync(path, { throwIfNoEntry: false });
  const uid = process.geteuid?.();
  if (entry === undefined || uid === undefined) return undefined;
  const isOthers = (stats: Stats): boolean => stats.uid !== uid && stats.uid !== 0;
  if (isOthers(entry)) return `${path} belongs to user id ${entry.uid}, and this is user id ${uid}`;
  if (entry.isSymbolicLink() && !kind.endsWith('folder')) return `${path} is a symbolic link`;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return `${path} is a symbolic link to nothing`;
  if (isOthers(found)) return `${path} is a link to what belongs to user id ${found.uid}`;
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const counted = groups.includes(found.gid) ? OTHERS : MAY_DO_ANYTHING;
  const isOpen = (found.mode & forbidden(path, kind) & counted) !== 0;
  return isOpen ? `users other than its owner may use ${path} (chmod go= ${path})` : undefined;
}

function forbidden(path: string, kind: OwnKind): number {
  if (kind === 'closed folder' || kind === 'secret') return MAY_DO_ANYTHING;
  const isReachable = kind === 'file' && (statSync(dirname(path)).mode & MAY_PASS) !== 0;
  return isReachable ? MAY_READ_OR_WRITE : MAY_WRITE;
}

/**
 * Makes the folder into which files are written, unless it is there. Throws `REFUSED` if others may write to it: they
 * could replace the files. Returns the first folder that was made, if any.
 */
export function ownFolder(path: string): string | undefined {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  assertOwn(path, 'folder');
  return made;
}

/** Throws `REFUSED` if `faultOfOwner` finds a fault. */
export function assertOwn(path: string, kind: OwnKind): void {
  const fault = faultOfOwner(path, kind);
  if (fault === undefined) return;
  throw new FuelError('REFUSED', `${fault}. Use a folder that belongs to this user and is closed to others`);
}
