import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandLine } from '../../support/service/command-line.ts';

/** A user that owns nothing. Tests of root run as this user, who may read the program in most places. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asUser = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
const MAIN = join(import.meta.dirname, '../../../src/operator/cli/main.ts');
const canRun = spawnSync(process.execPath, ['--check', MAIN], asUser).status === 0;
if (!canRun)
  process.stdout.write('fuel doctor not tested here as another user: it may not read the program\n');

/** A store that was closed properly, in a folder that other users can reach. */
async function stopped() {
  const { done } = commandLine();
  const folder = process.env.FUEL_DATA_DIR ?? '';
  chmodSync(join(folder, '..'), 0o755);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await done('account', 'open', '7', '--name', 'Seven');
  const doctor = () => {
    const { stdout } = spawnSync(process.execPath, [MAIN, 'doctor', '--json'], {
      ...asUser,
      encoding: 'utf8',
    });
    const found = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { check: string; ok: boolean; do: string });
    return new Map(found.map((finding) => [finding.check, finding]));
  };
  return { folder, doctor };
}

test.runIf(canRun)('doctor says as which user to run it where this one may not use the folder', async () => {
  const { folder, doctor } = await stopped();
  if (!isRoot) chmodSync(folder, 0);
  const found = doctor();
  chmodSync(folder, 0o700);
  for (const check of ['data-directory', 'store', 'accounts', 'consumers']) {
    const remedy = expect.stringMatching(/^run the service, and this command, as the user that owns it: \S+/);
    expect(found.get(check)).toMatchObject({ ok: false, do: remedy });
  }
  expect(found.get('lag')).toMatchObject({ ok: true, detail: 'not checked, because consumers is wrong' });
});

test.runIf(canRun)('doctor leaves nothing beside files that this user may only read', async () => {
  const { folder, doctor } = await stopped();
  const files = readdirSync(folder);
  for (const name of ['', ...files]) if (isRoot) chownSync(join(folder, name), NOBODY, NOBODY);
  chmodSync(join(folder, 'events.db'), 0o400);
  const found = doctor();
  expect(found.get('data-directory')).toMatchObject({ ok: false, do: expect.stringContaining('chmod u+w') });
  expect(found.get('store')).toMatchObject({ detail: expect.stringContaining('data-directory says why') });
  expect(readdirSync(folder)).toEqual(files);
  expect(existsSync(join(folder, 'events.db-wal'))).toBe(false);
});
