import { accessSync, constants, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '../../base/config/config.ts';
import { faultOfOwner, type OwnKind } from '../../base/config/own-files.ts';
import { reasonOf } from '../../base/errors.ts';
import { cureOf } from '../../engines/sqlite/driver/errors.ts';
import {
  EMBEDDED_FILES,
  type EmbeddedFile,
  type EmbeddedState,
  faultOfRestore,
  inspectEmbedded,
  MAX_READ_THROUGH_BYTES,
} from '../../engines/sqlite/embedded-files.ts';
import { type Finding, right, wrong } from './check.ts';

const SECRET_FILES = ['master.key', 'tls-key.pem'];

/** Checks that the data directory is private and writable, and that the files of this program in it can be used. */
export function checkDataDirectory(
  dataDir: string,
  /** Called if the folder can be used. */
  lookAtFiles: () => readonly EmbeddedState[],
): Finding {
  const path = resolve(dataDir);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    return right(
      `${path} does not exist yet: the first start creates it; make sure that it is the right place`,
    );
  if (!found.isDirectory()) return wrong(`${path} is not a folder`, 'set FUEL_DATA_DIR to a folder');
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return wrong(`this user (${process.getuid?.()}) may not use ${path}`, asOwnerOf(path));
  }
  const kinds = readdirSync(path).map((name) => [name, kindOf(name)] as const);
  for (const [name, kind] of [['', 'closed folder'] as const, ...kinds]) {
    const used = join(path, name);
    const fault = kind && faultOfOwner(used, kind);
    if (fault !== undefined)
      return wrong(fault, fault.includes('chmod') ? `chmod go= ${used}` : asOwnerOf(used));
  }
  const restore = faultOfRestore(path);
  return restore === undefined ? filesFinding(path, lookAtFiles()) : wrong(restore.detail, restore.remedy);
}

/** Looks at the embedded files that exist. */
export function lookAtFiles(config: Config): EmbeddedState[] {
  return (Object.keys(EMBEDDED_FILES) as EmbeddedFile[]).flatMap((name) => {
    const state = inspectEmbedded(config, name, { maxCheckedBytes: MAX_READ_THROUGH_BYTES });
    return state === undefined ? [] : [state];
  });
}

function filesFinding(path: string, files: readonly EmbeddedState[]): Finding {
  const newer = files.find(({ version, knownVersion }) => version > knownVersion);
  if (newer !== undefined) {
    return wrong(
      `${newer.name} has version ${newer.version}, and this program knows ${newer.knownVersion}`,
      'run the newer program, or restore a backup that this one made',
    );
  }
  const damaged = files.find(({ damage }) => typeof damage === 'string');
  if (damaged !== undefined) {
    return wrong(`${damaged.name} is damaged: ${damaged.damage}`, cureOf(join(path, damaged.name)));
  }
  const readOnly = files.filter(({ isReadOnly }) => isReadOnly).map(({ name }) => join(path, name));
  if (readOnly.length > 0) {
    return wrong(
      `this user (${process.getuid?.()}) may not write to ${readOnly.join(', ')}`,
      `chmod u+w ${readOnly.join(' ')}, or ${asOwnerOf(path)}`,
    );
  }
  if (files.length === 0)
    return right(`${path}: nothing was started here yet, so there is no embedded store`);
  const older = files.filter(({ version, knownVersion }) => version < knownVersion).map(({ name }) => name);
  const large = files.filter(({ damage }) => damage === undefined).map(({ name }) => name);
  return right(
    `${path}: ${files.map(({ name }) => name).join(', ')}` +
      (older.length > 0 ? `; updated at the next start: ${older.join(', ')}` : '') +
      (large.length > 0 ? `; too large to be read here: ${large.join(', ')}` : ''),
  );
}

/** Returns `undefined` for a file that is not the service's. */
function kindOf(name: string): OwnKind | undefined {
  if (SECRET_FILES.includes(name)) return 'secret';
  return /\.db(?:-wal|-shm)?$/.test(name) ? 'file' : undefined;
}

/** Says what to do if this user may not use a file or folder. */
export function asOwnerOf(path: string): string {
  return `run the service, and this command, as the user that owns it: ${ownerOf(path)}`;
}

/** Returns the owner of the file, or of the nearest folder above it that this user can see. */
function ownerOf(path: string): string {
  try {
    const { uid } = statSync(path);
    const line = new RegExp(`^([^:]+):[^:]*:${uid}:`, 'm').exec(readFileSync('/etc/passwd', 'utf8'));
    return line?.[1] ?? `user id ${uid}`;
  } catch (error) {
    const above = dirname(path);
    if (above === path) return reasonOf(error);
    return ownerOf(above);
  }
}
