/**
 * Keeps compiled sources between commands, since compiling takes most of the time of a short command. Code in the cache
 * is executed unchecked, so the cache is in a folder that only this user can write to, or there is none. Loaded by `-r`
 * before the program, so that the program's first file comes from the cache too and the type stripper is not loaded. Node
 * itself would use any folder in NODE_COMPILE_CACHE before this file runs; so `bin/fuel` passes it as FUEL_COMPILE_CACHE.
 */
const { enableCompileCache } = require('node:module');
const { isAbsolute, join } = require('node:path');
const { ownFolder } = require('./own-folder.cjs');

const { FUEL_COMPILE_CACHE: requested, XDG_CACHE_HOME: caches, HOME: home } = process.env;
const places = [
  requested?.trim(),
  caches && isAbsolute(caches)
    ? join(caches, 'fuel-integration')
    : home && join(home, '.cache/fuel-integration'),
];
const uid = process.geteuid?.();
for (const place of uid === undefined ? [] : places) {
  const folder = place && isAbsolute(place) ? folderAt(place) : undefined;
  if (folder === undefined) continue;
  enableCompileCache(folder);
  process.env.NODE_COMPILE_CACHE = folder; // for the threads
  break;
}

function folderAt(place) {
  try {
    return ownFolder(place, uid);
  } catch {
    return undefined; // can't be created or read: a read-only disk, no permission
  }
}
