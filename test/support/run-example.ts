import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** Runs an example to its end in an empty folder, with only these settings. */
export function runExample(
  file: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [join(EXAMPLES, file), ...args], {
    cwd: temporaryFolder(),
    env: { PATH: process.env.PATH ?? '', ...env },
    encoding: 'utf8',
  });
}
