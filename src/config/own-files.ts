import { lstatSync, type Stats, statSync } from 'node:fs';
import { FuelError } from '../errors.ts';

/**
 * `folder`: others may neither look into it nor write to it. `file`, in such a folder: others may not write to it.
 * `secret`: nor read it, should the folder be opened one day; that is a matter of doctor's.
 */
export type OwnKind = 'folder' | 'file' | 'secret';

/** What others must not have, and what a group must not that this process is not in. */
const CLOSED: Readonly<Record<OwnKind, { readonly others: number; readonly group: number }>> = {
  folder: { others: 0o007, group: 0o070 },
  file: { others: 0o002, group: 0o020 },
  secret: { others: 0o007, group: 0o070 },
};

/**
 * Why it is not to be used, `undefined` where it is this user's (or root's) alone, or not there. A group that this
 * process is in may use it, since a volume in Kubernetes (`fsGroup`) is shared like that.
 */
export function faultOfOwner(path: string, kind: OwnKind): string | undefined {
  const entry = lstatSync(path, { throwIfNoEntry: false });
  const uid = process.geteuid?.();
  if (entry === undefined || uid === undefined) return undefined;
  const isOthers = (stats: Stats): boolean => stats.uid !== uid && stats.uid !== 0;
  if (isOthers(entry)) return `${path} belongs to user id ${entry.uid}, and this is user id ${uid}`;
  if (entry.isSymbolicLink() && kind !== 'folder') return `${path} is a symbolic link`;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return `${path} is a symbolic link to nothing`;
  if (isOthers(found)) return `${path} is a link to what belongs to user id ${found.uid}`;
  const { others, group } = CLOSED[kind];
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const isOpen = (found.mode & others) !== 0 || ((found.mode & group) !== 0 && !groups.includes(found.gid));
  return isOpen ? `others than its owner may use ${path} (chmod go= ${path})` : undefined;
}

/** Throws `REFUSED` where `faultOfOwner` finds something. */
export function assertOwn(path: string, kind: OwnKind): void {
  const fault = faultOfOwner(path, kind);
  if (fault === undefined) return;
  throw new FuelError('REFUSED', `${fault}: name a folder of this user's own, that no other may use`);
}
