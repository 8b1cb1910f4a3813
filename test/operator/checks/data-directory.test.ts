import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { EmbeddedState } from '../../../src/engines/sqlite/embedded-files.ts';
import { checkDataDirectory } from '../../../src/operator/checks/data-directory.ts';
import { said } from '../../support/checks/facts.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const FILE: EmbeddedState = {
  name: 'events.db',
  version: 3,
  knownVersion: 3,
  damage: null,
  isReadOnly: false,
};

const check = (path: string, files: readonly EmbeddedState[] = []) =>
  said(checkDataDirectory(path, () => files));

describe('the data directory', () => {
  test('that does not exist yet is right, and named', async () => {
    const path = join(temporaryFolder(), 'data');
    const finding = await check(path);
    expect(finding).toMatchObject({
      ok: true,
      detail: expect.stringContaining(`${path} does not exist yet`),
    });
  });

  test('without files says that nothing was started', async () => {
    const finding = await check(temporaryFolder());
    expect(finding).toMatchObject({
      ok: true,
      detail: expect.stringContaining('nothing was started here yet'),
    });
  });

  test('that others may use is wrong, and so are its secret files', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    expect(await check(folder)).toMatchObject({ ok: false, do: `chmod go= ${folder}` });
    chmodSync(folder, 0o700);
    const file = join(folder, 'master.key');
    writeFileSync(file, 'x', { mode: 0o644 });
    expect(await check(folder)).toMatchObject({ ok: false, do: `chmod go= ${file}` });
  });

  test('that is a file is wrong', async () => {
    const path = join(temporaryFolder(), 'data');
    writeFileSync(path, '');
    expect(await check(path)).toMatchObject({
      ok: false,
      detail: `${path} is not a folder`,
    });
  });

  test.each([
    [{ ...FILE, version: 4 }, false, 'events.db has version 4, and this program knows 3'],
    [{ ...FILE, version: 2 }, true, 'updated at the next start: events.db'],
    [{ ...FILE, damage: 'row 3 missing from index' }, false, 'events.db is damaged: row 3 missing'],
    [{ ...FILE, isReadOnly: true }, false, 'may not write to '],
    [{ ...FILE, damage: undefined }, true, 'too large to be read here: events.db'],
    [FILE, true, 'events.db'],
  ])('with the file %j is right: %s', async (file, ok, detail) => {
    const finding = await check(temporaryFolder(), [file]);
    expect(finding).toMatchObject({ ok, detail: expect.stringContaining(detail) });
  });
});
