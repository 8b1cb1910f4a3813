const { lstatSync, mkdirSync, realpathSync } = require('node:fs');
const { join, parse, resolve, sep } = require('node:path');

const MAX_SYMLINKS = 8;
const OTHERS_MAY_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Returns the real path of a private folder of the user `uid`, creating it if it is missing: owned by the user, mode
 * 0700, not a symbolic link. Every folder above it must belong to the user or root and must not be writable by others,
 * unless the sticky bit protects its entries (/tmp). Nobody else can then write into it or replace it, now or later.
 * Returns `undefined` if that does not hold. Symbolic links above it are followed only if they belong to the user or
 * root.
 */
exports.ownFolder = function ownFolder(path, uid, linksLeft = MAX_SYMLINKS) {
  const { root } = parse(resolve(path));
  const names = resolve(path)
    .slice(root.length)
    .split(sep)
    .filter((name) => name !== '');
  let at = root;
  if (names.length === 0 || !isClosed(lstatSync(root), uid)) return undefined;
  for (const [index, name] of names.entries()) {
    at = join(at, name);
    const isLast = index === names.length - 1;
    const found = lstatSync(at, { throwIfNoEntry: false }) ?? createFolder(at);
    if (found.isSymbolicLink()) {
      if (isLast || linksLeft === 0 || !isTrusted(found, uid)) return undefined;
      return ownFolder(join(realpathSync(at), ...names.slice(index + 1)), uid, linksLeft - 1);
    }
    const isFine = isLast ? found.uid === uid && (found.mode & 0o777) === 0o700 : isClosed(found, uid);
    if (!found.isDirectory() || !isFine) return undefined;
  }
  return at;
};

/** Creates the folder. The folders above it have been checked, so nothing is created in another user's folder. */
function createFolder(path) {
  mkdirSync(path, { mode: 0o700 });
  return lstatSync(path);
}

function isClosed(stats, uid) {
  return isTrusted(stats, uid) && ((stats.mode & OTHERS_MAY_WRITE) === 0 || (stats.mode & STICKY) !== 0);
}

function isTrusted(stats, uid) {
  return stats.uid === 0 || stats.uid === uid;
}
