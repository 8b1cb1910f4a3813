import { createHash } from 'node:crypto';
import { constants, createReadStream, existsSync } from 'node:fs';
import { copyFile, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import packageJson from '../../../package.json' with { type: 'json' };
import { assertOwn, ownFolder } from '../../base/config/own-files.ts';
import { FuelError } from '../../base/errors.ts';
import { backupFile, copiedCheckpoint, copiedEnd, faultOfCopy } from '../../engines/sqlite/copied-files.ts';
import { assertRestored, numberedFiles } from '../../engines/sqlite/embedded-files.ts';

/**
 * The databases in the order in which they are copied. Those made from the events come before the events, so that no
 * checkpoint of the copy is ahead of the copied log. Acknowledgements (`subscriptions.db`) come before the deliveries that they
 * confirm, so that no such delivery is missing.
 */
const DATABASES = ['requests.db', 'subscriptions.db', 'deliveries.db', 'events.db'];
/** The view is copied before the databases. It has two files while it is rebuilt, and is served from another file afterwards. */
const VIEW = 'transactions.db';
/** The keys and the certificate that the service has generated. */
const PLAIN_FILES = ['master.key', 'seal.key', 'tls-cert.pem', 'tls-key.pem'];

/** The newest checkpoint, which proves what the log was. Operators should keep it elsewhere too. */
const CHECKPOINT = 'checkpoint.txt';
/** Describes the backup. */
const MANIFEST = 'backup.json';
/** The SHA-256 of each file in the format of `sha256sum -c`. It is written last. */
const CHECKSUMS = 'SHA256SUMS';

export interface BackupManifest {
  readonly made_at: string;
  /** The version of the program that made the backup. */
  readonly program: string;
  /** The position of the last event of the log. */
  readonly events_up_to: number;
  readonly files: readonly string[];
}

/**
 * Copies the embedded files of `dataDir` into `target`, a new or empty folder, while the service runs, and checks the
 * copies. The folder can then be used as `FUEL_DATA_DIR`. The checksums are written last: a copy without them is
 * incomplete. Throws `REFUSED` if the target is not empty, if other users can write to it, or if there is nothing to copy;
 * `STORE_DAMAGED` for a damaged file.
 */
export async function backupDataDir(
  dataDir: string,
  target: string,
  madeAt: string,
): Promise<BackupManifest> {
  if (!existsSync(join(dataDir, 'events.db'))) {
    throw new FuelError(
      'REFUSED',
      `${dataDir} has no embedded store. Set FUEL_DATA_DIR to the service's data directory`,
    );
  }
  assertOwn(dataDir, 'folder');
  assertRestored(dataDir);
  ownFolder(target);
  if ((await readdir(target)).length > 0)
    throw new FuelError('REFUSED', `${target} is not empty. Name a new folder`);
  const files = await copyView(dataDir, target); // before the log, which the copy of the view is never ahead of then
  for (const name of DATABASES.filter((file) => existsSync(join(dataDir, file)))) {
    await copyDatabase(name, { dataDir, target });
    files.push(name);
  }
  for (const name of files) assertWhole(name, { dataDir, target });
  for (const name of PLAIN_FILES.filter((file) => existsSync(join(dataDir, file)))) {
    assertOwn(join(dataDir, name), 'file');
    await copyFile(join(dataDir, name), join(target, name), constants.COPYFILE_EXCL);
    files.push(name);
  }
  const checkpoint = copiedCheckpoint(target);
  if (checkpoint !== undefined) {
    await writeNew(join(target, CHECKPOINT), checkpoint);
    files.push(CHECKPOINT);
  }
  const made = { made_at: madeAt, program: packageJson.version, events_up_to: copiedEnd(target) };
  const manifest: BackupManifest = { ...made, files };
  await writeNew(join(target, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
  let checksums = '';
  for (const name of [...files, MANIFEST]) checksums += `${await checksumOf(join(target, name))}  ${name}\n`;
  await writeNew(join(target, CHECKSUMS), checksums);
  await syncFile(target);
  return manifest;
}

/** Has SQLite check a copied database. */
function assertWhole(
  name: string,
  { dataDir, target }: { readonly dataDir: string; readonly target: string },
): void {
  const fault = faultOfCopy(join(target, name));
  if (fault !== undefined)
    throw new FuelError(
      'STORE_DAMAGED',
      `${join(dataDir, name)} is damaged, and so is its copy: ${fault}. Run \`fuel doctor\``,
    );
}

/** Copies all files of the view, and starts again if others have replaced them meanwhile. */
async function copyView(dataDir: string, target: string): Promise<string[]> {
  for (;;) {
    const names = numberedFiles(dataDir, VIEW);
    try {
      for (const name of names) await copyDatabase(name, { dataDir, target });
    } catch (error) {
      if (names.every((name) => existsSync(join(dataDir, name)))) throw error;
    }
    if (String(numberedFiles(dataDir, VIEW)) === String(names)) return names;
    for (const name of names.flatMap((each) => [each, `${each}.partial`]))
      await rm(join(target, name), { force: true });
  }
}

async function copyDatabase(
  name: string,
  { dataDir, target }: { readonly dataDir: string; readonly target: string },
): Promise<void> {
  const partial = join(target, `${name}.partial`);
  await (await open(partial, 'wx', 0o600)).close(); // fails if somebody put a file or a link there
  await backupFile(join(dataDir, name), partial);
  await syncFile(partial);
  await rename(partial, join(target, name));
}

async function checksumOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

async function writeNew(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true });
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
