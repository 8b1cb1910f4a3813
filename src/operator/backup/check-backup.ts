import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FuelError } from '../../base/errors.ts';
import { type CopiedPositions, copiedPositions, faultOfCopy } from '../../engines/sqlite/copied-files.ts';
import { type BackupManifest, checksumOf, MANIFEST } from './backup.ts';

export interface BackupCheck {
  readonly made_at: string | null;
  readonly program: string | null;
  readonly positions: CopiedPositions | null;
  /** How many files it should have. */
  readonly files: number;
  /** Why it can't be restored; none where it is whole. */
  readonly faults: readonly string[];
}

/** Whether a backup is whole: its files, their bytes, and what SQLite finds in them. Writes nothing. Throws `REFUSED`. */
export async function checkBackup(folder: string): Promise<BackupCheck> {
  if (!existsSync(folder)) throw new FuelError('REFUSED', `there is no folder ${folder}`);
  const manifest = readManifest(folder);
  if (typeof manifest === 'string')
    return { made_at: null, program: null, positions: null, files: 0, faults: [manifest] };
  const { made_at, program, positions, checksums } = manifest;
  const names = Object.keys(checksums);
  const faults: string[] = [];
  for (const [name, checksum] of Object.entries(checksums)) {
    const fault = await faultOf(join(folder, name), checksum);
    if (fault !== undefined) faults.push(`${name} ${fault}`);
  }
  for (const name of readdirSync(folder).filter((each) => each !== MANIFEST && !names.includes(each)))
    faults.push(`${name} is not of the backup: something has used the folder`);
  if (faults.length === 0 && JSON.stringify(copiedPositions(folder)) !== JSON.stringify(positions))
    faults.push(`${MANIFEST} names other positions than the files have`);
  return { made_at, program, positions, files: names.length, faults };
}

async function faultOf(path: string, checksum: string): Promise<string | undefined> {
  if (!existsSync(path)) return 'is missing';
  if ((await checksumOf(path)) !== checksum) return 'was changed since, or is damaged';
  const found = path.endsWith('.db') ? faultOfCopy(path) : undefined;
  return found === undefined ? undefined : `is damaged, as the file was that it is a copy of: ${found}`;
}

/** Or why there is none. */
function readManifest(folder: string): BackupManifest | string {
  let text: string;
  try {
    text = readFileSync(join(folder, MANIFEST), 'utf8');
  } catch {
    return `there is no ${MANIFEST}: the backup is incomplete, make another`;
  }
  try {
    const manifest = JSON.parse(text) as Partial<BackupManifest>;
    if (typeof manifest.checksums === 'object') return manifest as BackupManifest;
    return `${MANIFEST} has no checksums: a former version of this program made the backup`;
  } catch {
    return `${MANIFEST} is no JSON`;
  }
}
