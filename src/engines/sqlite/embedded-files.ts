import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_STORE } from '../../accounts/rows/tables.ts';
import type { Config } from '../../base/config/config.ts';
import { assertOwn, faultOfOwner, ownFolder } from '../../base/config/own-files.ts';
import { CONTROL_STORE } from '../../base/coordination/stored-coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { REQUESTS_STORE } from '../../pull/stored-requests.ts';
import { VIEWS_STORE } from '../../pull/view/stores.ts';
import { DELIVERY_STORE } from '../../push/log/tables.ts';
import type { StoreState } from '../../service/engines/engines.ts';
import type { StorePlan } from '../../tables/plan.ts';
import { isDamage } from './driver/errors.ts';
import { type FileState, inspectFile } from './driver/inspect-file.ts';
import { restoredOverLog } from './driver/restored-files.ts';
import { SUBSCRIPTION_MIGRATIONS } from './event-store/group.ts';
import { EVENT_MIGRATIONS } from './event-store/schema.ts';

/** The embedded files, with the version that this program writes. */
const FILES = {
  events: { version: EVENT_MIGRATIONS.length },
  transactions: VIEWS_STORE,
  deliveries: DELIVERY_STORE,
  subscriptions: { version: SUBSCRIPTION_MIGRATIONS.length },
  control: CONTROL_STORE,
  accounts: ACCOUNTS_STORE,
  requests: REQUESTS_STORE,
} as const satisfies Readonly<Record<string, Pick<StorePlan, 'version'>>>;

export type EmbeddedFile = keyof typeof FILES;

/** The names of the embedded files. Each is one SQLite database in the data directory. */
export const EMBEDDED_FILES = Object.fromEntries(
  Object.keys(FILES).map((name) => [name, `${name}.db`]),
) as Readonly<Record<EmbeddedFile, string>>;

const NUMBERED = /^(.+)-(\d+)\.db$/;

/**
 * Returns the names of the files in `folder` that are `first` with or without a number, such as `transactions.db` and
 * `transactions-2.db`, in the order of their numbers.
 */
export function numberedFiles(folder: string, first: string): string[] {
  return (existsSync(folder) ? readdirSync(folder) : [])
    .flatMap((name) => {
      if (name === first) return [{ name, number: 0 }];
      const [, stem, number] = NUMBERED.exec(name) ?? [];
      return `${stem}.db` === first ? [{ name, number: Number(number) }] : [];
    })
    .sort((a, b) => a.number - b.number)
    .map(({ name }) => name);
}

/** Returns the names of the embedded files in the folder. A view may have several. */
export function embeddedFiles(folder: string): string[] {
  return Object.values(EMBEDDED_FILES).flatMap((name) => numberedFiles(folder, name));
}

/** The largest file that is checked while somebody waits. */
export const MAX_READ_THROUGH_BYTES = 64 * 1024 * 1024;

/** The state of one of the embedded files. */
export interface EmbeddedState extends FileState {
  readonly name: string;
  /** The version that this program writes. */
  readonly knownVersion: number;
}

/**
 * Returns the state of an embedded file; `undefined` if there is none. Of several files it returns a damaged one, if any.
 * Never throws because of damage.
 */
export function inspectEmbedded(
  { FUEL_DATA_DIR }: Pick<Config, 'FUEL_DATA_DIR'>,
  name: EmbeddedFile,
  { maxCheckedBytes }: { readonly maxCheckedBytes: number },
): EmbeddedState | undefined {
  const knownVersion = FILES[name].version;
  const found = numberedFiles(FUEL_DATA_DIR, EMBEDDED_FILES[name]).map((file) => {
    const known = { name: file, knownVersion };
    try {
      return { ...known, ...inspectFile(join(FUEL_DATA_DIR, file), { maxCheckedBytes }) };
    } catch (error) {
      if (!isDamage(error)) throw error;
      return { ...known, version: knownVersion, damage: 'it is no database', isReadOnly: false };
    }
  });
  return found.find(({ damage }) => typeof damage === 'string') ?? found[0];
}

export function stateOfFile(config: Config, name: EmbeddedFile): StoreState {
  const [first] = numberedFiles(config.FUEL_DATA_DIR, EMBEDDED_FILES[name]);
  if (first !== undefined && isForeign(config.FUEL_DATA_DIR, EMBEDDED_FILES[name])) return 'read-only';
  if (faultOfRestore(config.FUEL_DATA_DIR) !== undefined) return 'damaged'; // opening it would apply the foreign log
  const state = inspectEmbedded(config, name, { maxCheckedBytes: 0 });
  if (state === undefined || state.version === 0) return 'missing'; // an empty file counts as missing
  if (typeof state.damage === 'string') return 'damaged';
  if (state.isReadOnly) return 'read-only';
  return state.version === state.knownVersion ? 'current' : 'of another version';
}

/** Returns the paths of a file, or of a view's files, with their logs. */
function partsOf(folder: string, name: string): string[] {
  const paths = [name, ...numberedFiles(folder, name)].map((file) => join(folder, file));
  return paths.flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
}

/** True if this user may not, or must not, use an existing file. */
function isForeign(folder: string, name: string): boolean {
  if (faultOfOwner(folder, 'folder') !== undefined) return true;
  return partsOf(folder, name).some((path) => faultOfOwner(path, 'file') !== undefined);
}

/** Says which files of the folder were restored beside the log of a former file; `undefined` if there are none. */
export function faultOfRestore(
  folder: string,
): { readonly detail: string; readonly remedy: string } | undefined {
  const own = () =>
    embeddedFiles(folder)
      .map((name) => join(folder, name))
      .filter((path) => faultOfOwner(path, 'file') === undefined);
  const found = restoredOverLog(folder, own);
  if (found.length === 0) return undefined;
  const logs = found.flatMap((path) => [`${path}-wal`, `${path}-shm`]);
  return {
    detail: `restored from a backup while the log of the former file was still there, which would undo it: ${found.join(', ')}`,
    remedy: `stop every process that uses ${folder}, and run: rm -f ${logs.join(' ')}. The files are then as they were in the backup`,
  };
}

/** Throws `REFUSED` if a file of the folder was restored beside the log of a former file. */
export function assertRestored(folder: string): void {
  const fault = faultOfRestore(folder);
  if (fault !== undefined) throw new FuelError('REFUSED', `${fault.detail}: ${fault.remedy}`);
}

/**
 * Returns the path of an embedded file, and makes its folder. Throws `REFUSED` if others may use the files, or if
 * one was restored beside the log of a former file.
 */
export function embeddedFile(config: Config, name: string): string {
  ownFolder(config.FUEL_DATA_DIR);
  for (const part of partsOf(config.FUEL_DATA_DIR, name)) assertOwn(part, 'file');
  assertRestored(config.FUEL_DATA_DIR);
  return join(config.FUEL_DATA_DIR, name);
}
