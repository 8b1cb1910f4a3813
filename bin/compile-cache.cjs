/**
 * Keeps compiled sources between commands; most of a short command's time would go into compiling them. What lies
 * in the cache is run without a question, so it is in a folder that only this user can write to, or there is none.
 * Loaded by `-r` before the program, so that its first file comes from the cache too: without that the machinery
 * that strips types would have to be loaded for it. Node itself would take any folder that NODE_COMPILE_CACHE names,
 * before a line of this could judge it; so `bin/fuel` hands the variable over under another name.
 */
const { enableCompileCache } = require('node:module');
const { isAbsolute, join } = require('node:path');
const { ownFolder } = require('./own-folder.cjs');

const { FUEL_COMPILE_CACHE: asked, XDG_CACHE_HOME: caches, HOME: home } = process.env;
const places = [
  asked,
  caches && isAbsolute(caches)
    ? join(caches, 'fuel-integration')
    : home && join(home, '.cache/fuel-integration'),
];
const uid = process.geteuid?.();
for (const place of uid === undefined ? [] : places) {
  const folder = place && isAbsolute(place) ? folderAt(place) : undefined;
  if (folder === undefined) continue;
  enableCompileCache(folder);
  process.env.NODE_COMPILE_CACHE = folder; // threads take it from here
  break;
}

function folderAt(place) {
  try {
    return ownFolder(place, uid);
  } catch {
    return undefined; // it can't be made or read: a read-only disk, no permission
  }
}
