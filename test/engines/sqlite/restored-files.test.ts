import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { backupDataDir } from '../../../src/operator/backup/backup.ts';
import { examine } from '../../../src/operator/checks/doctor.ts';
import { nameOf, record } from '../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** The same path is judged once in a process, so each start of these tests has a new folder. */
async function storeIn(folder: string) {
  const engines = await openEngines(loadConfig({ FUEL_DATA_DIR: folder }, 'serve'), systemClock);
  onTestFinished(() => engines.close());
  return engines.store();
}

const namesIn = async (folder: string) => (await (await storeIn(folder)).readStream('account-1')).map(nameOf);

/** Copies the parts of `events.db` to a new folder: what a killed process or a restore leaves there. */
function put(...parts: readonly (readonly [from: string, part: string])[]): string {
  const folder = temporaryFolder();
  for (const [from, part] of parts)
    copyFileSync(join(from, `events.db${part}`), join(folder, `events.db${part}`));
  return folder;
}

/** A store that is still open, and a backup that lacks its last event. */
async function storeAndBackup() {
  const [live, backup] = [temporaryFolder(), temporaryFolder()];
  const store = await storeIn(live);
  await record(store, 'account-1', 'a');
  await backupDataDir(live, backup, '2026-09-03T08:00:00.000Z');
  await record(store, 'account-1', 'later');
  return { live, backup };
}

const contents = (folder: string) =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]);

test('a backup that was copied over a file whose log stayed is refused, and nothing is changed', async () => {
  const { live, backup } = await storeAndBackup();
  const folder = put([backup, ''], [live, '-wal'], [live, '-shm']);
  const before = contents(folder);
  const path = join(folder, 'events.db');
  await expect(storeIn(folder)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(`${path}: stop every process .* rm -f ${path}-wal ${path}-shm\\.`),
  });
  const target = join(temporaryFolder(), 'backup');
  await expect(backupDataDir(folder, target, '')).rejects.toThrow('would undo it');
  const lines = await examine({ FUEL_DATA_DIR: folder }, systemClock);
  expect(lines.find(({ check }) => check === 'data-directory')).toMatchObject({
    ok: false,
    detail: expect.stringContaining(path),
    do: expect.stringContaining(`rm -f ${path}-wal ${path}-shm`),
  });
  expect(contents(folder)).toEqual(before);
  expect(await namesIn(put([folder, '']))).toEqual(['a']);
});

test('the same backup that is restored once more over the log of its first restore is refused too', async () => {
  const { backup } = await storeAndBackup();
  const first = put([backup, '']);
  await record(await storeIn(first), 'account-1', 'after');
  await expect(storeIn(put([backup, ''], [first, '-wal']))).rejects.toThrow('restored from a backup');
});

test('a restored file without a log starts, and starts again after a kill', async () => {
  const { backup } = await storeAndBackup();
  const first = put([backup, '']);
  expect(await namesIn(first)).toEqual(['a']);
  const killedAtOnce = put([first, '']);
  expect(await namesIn(killedAtOnce)).toEqual(['a']);
  await record(await storeIn(killedAtOnce), 'account-1', 'after');
  expect(await namesIn(put([killedAtOnce, ''], [killedAtOnce, '-wal']))).toEqual(['a', 'after']);
});
