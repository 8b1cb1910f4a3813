const { lstatSync, mkdirSync, realpathSync } = require('node:fs');
const { join, parse, resolve, sep } = require('node:path');

const SYMLINKS_FOLLOWED_AT_MOST = 8;
const OTHERS_MAY_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * The real path of a folder of the user `uid` alone, made where it is missing: owned by him, mode 0700, no symbolic
 * link. Every folder above it is his or root's and nobody else may write to it, except where the sticky bit lets
 * nobody rename or remove what belongs to others (/tmp). So nobody else can bring anything into it or put another
 * in its place, now or later. `undefined` where it is not so. Links above it count only where he or root made them.
 */
exports.ownFolder = function ownFolder(path, uid, linksLeft = SYMLINKS_FOLLOWED_AT_MOST) {
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
    const found = lstatSync(at, { throwIfNoEntry: false }) ?? made(at);
    if (found.isSymbolicLink()) {
      if (isLast || linksLeft === 0 || !isTrusted(found, uid)) return undefined;
      return ownFolder(join(realpathSync(at), ...names.slice(index + 1)), uid, linksLeft - 1);
    }
    const isFine = isLast ? found.uid === uid && (found.mode & 0o777) === 0o700 : isClosed(found, uid);
    if (!found.isDirectory() || !isFine) return undefined;
  }
  return at;
};

/** What is above it was judged before, so that nothing is made in another's folder. */
function made(path) {
  mkdirSync(path, { mode: 0o700 });
  return lstatSync(path);
}

function isClosed(stats, uid) {
  return isTrusted(stats, uid) && ((stats.mode & OTHERS_MAY_WRITE) === 0 || (stats.mode & STICKY) !== 0);
}

function isTrusted(stats, uid) {
  return stats.uid === 0 || stats.uid === uid;
}
