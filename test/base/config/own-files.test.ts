import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { findMasterKeys } from '../../../src/accounts/master-key.ts';
import { faultOfOwner } from '../../../src/base/config/own-files.ts';
import { silentLog } from '../../../src/base/log.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { embeddedFile } from '../../../src/engines/sqlite/embedded-files.ts';
import { certificateFiles } from '../../../src/pull/server/certificate.ts';
import { openSigner } from '../../../src/seals/seal-key.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const OTHER = 65_534;
/** Only root can give files to another user. */
const asRoot = test.runIf(process.geteuid?.() === 0);

let folder: string;
let file: string;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, 'events.db');
  writeFileSync(file, '');
});

describe('what a user may use', () => {
  test('is nothing, or its own and closed to others; a file in a closed folder may be readable', () => {
    expect(faultOfOwner(join(folder, 'missing'), 'folder')).toBeUndefined();
    expect(faultOfOwner(folder, 'folder')).toBeUndefined();
    chmodSync(file, 0o644);
    expect(faultOfOwner(file, 'file')).toBeUndefined();
    expect(faultOfOwner(file, 'secret')).toMatch(/users other than its owner may use .*chmod go=/);
  });

  test.each([0o702, 0o757, 0o777])('is no folder of mode %o', (mode) => {
    chmodSync(folder, mode);
    expect(faultOfOwner(folder, 'folder')).toMatch(/users other than its owner/);
  });

  test('is a folder that others may look into, but no file in it that they may read', () => {
    chmodSync(folder, 0o755);
    expect(faultOfOwner(folder, 'folder')).toBeUndefined();
    expect(faultOfOwner(folder, 'closed folder')).toMatch(/users other than its owner/);
    chmodSync(file, 0o600);
    expect(faultOfOwner(file, 'file')).toBeUndefined();
    chmodSync(file, 0o604);
    expect(faultOfOwner(file, 'file')).toMatch(/users other than its owner/);
  });

  test('is a folder for a group of its own, as a volume in Kubernetes has it, and for no other', () => {
    chmodSync(folder, 0o2770);
    expect(faultOfOwner(folder, 'folder')).toBeUndefined();
    expect(faultOfOwner(folder, 'closed folder')).toBeUndefined();
    if (process.geteuid?.() !== 0) return;
    chownSync(folder, 0, OTHER);
    chmodSync(folder, 0o2770);
    expect(faultOfOwner(folder, 'folder')).toMatch(/users other than its owner/);
  });

  test('is no file that others may write to, and no link to one', () => {
    chmodSync(file, 0o646);
    expect(faultOfOwner(file, 'file')).toMatch(/users other than its owner/);
    symlinkSync(file, join(folder, 'link.db'));
    expect(faultOfOwner(join(folder, 'link.db'), 'file')).toMatch(/is a symbolic link/);
  });

  asRoot('is nothing of another user, and no link to it', () => {
    chownSync(folder, OTHER, OTHER);
    expect(faultOfOwner(folder, 'folder')).toMatch(/belongs to user id 65534/);
    const link = join(temporaryFolder(), 'link');
    symlinkSync(folder, link);
    expect(faultOfOwner(link, 'folder')).toMatch(/is a link to what belongs to user id 65534/);
    chownSync(folder, 0, 0);
    expect(faultOfOwner(link, 'folder')).toBeUndefined();
    lchownSync(link, OTHER, OTHER); // that user can make it lead elsewhere
    expect(faultOfOwner(link, 'folder')).toMatch(/belongs to user id 65534/);
  });

  asRoot('is what belongs to root', () => {
    vi.spyOn(process, 'geteuid').mockReturnValue(OTHER);
    expect(faultOfOwner(folder, 'folder')).toBeUndefined();
    vi.restoreAllMocks();
  });

  test('is no link to nothing', () => {
    symlinkSync(join(folder, 'missing'), join(folder, 'link'));
    expect(faultOfOwner(join(folder, 'link'), 'folder')).toMatch(/is a symbolic link to nothing/);
  });
});

describe('commands', () => {
  const opened = async () => {
    const cli = commandLine();
    await cli.done('account', 'open', '7', '--name', 'Seven');
    return { ...cli, dataDir: process.env.FUEL_DATA_DIR ?? '' };
  };
  const open8 = ['account', 'open', '8', '--name', 'Eight'];

  test('refuse a data directory that others may use, and doctor names it', async () => {
    const { fuel, dataDir } = await opened();
    chmodSync(dataDir, 0o777);
    for (const args of [open8, ['account', 'list'], ['store', 'backup', `${dataDir}-copy`]]) {
      const { code, stderr } = await fuel(...args);
      expect([args, code, stderr]).toEqual([args, 1, expect.stringContaining(`chmod go= ${dataDir}`)]);
    }
    expect(existsSync(`${dataDir}-copy`)).toBe(false);
    const { lines } = await fuel('doctor', '--json');
    expect(lines).toContainEqual(
      expect.objectContaining({ check: 'data-directory', ok: false, do: `chmod go= ${dataDir}` }),
    );
  });

  test('open no file in such a folder, and take no master key from it', () => {
    chmodSync(folder, 0o777);
    const config = loadConfig({ FUEL_DATA_DIR: folder, FUEL_ENVIRONMENT: 'staging' }, 'command');
    expect(() => embeddedFile(config, 'control.db')).toThrow(`chmod go= ${folder}`);
    expect(() => findMasterKeys(config)).toThrow(`chmod go= ${folder}`);
  });

  test('write no key and no certificate into such a folder', async () => {
    chmodSync(folder, 0o777);
    const refused = `chmod go= ${folder}`;
    const config = loadConfig({ FUEL_DATA_DIR: folder, FUEL_ENVIRONMENT: 'staging' }, 'command');
    expect(() => openSigner('store', config)).toThrow(refused);
    await expect(certificateFiles(config, silentLog)).rejects.toThrow(refused);
    expect(readdirSync(folder)).toEqual(['events.db']);
  });

  asRoot('refuse files and a master key of another user', async () => {
    const { fuel, dataDir } = await opened();
    writeFileSync(join(dataDir, 'events.db-wal'), '', { mode: 0o600 });
    for (const name of ['events.db', 'events.db-wal', 'master.key']) {
      chownSync(join(dataDir, name), OTHER, OTHER);
      const { code, stderr } = await fuel(...open8);
      expect([name, code, stderr]).toEqual([name, 1, expect.stringContaining('belongs to user id 65534')]);
      chownSync(join(dataDir, name), 0, 0);
    }
    expect((await fuel(...open8)).code).toBe(0);
  });

  asRoot('back nothing up into a folder of another user', async () => {
    const { fuel } = await opened();
    const target = join(temporaryFolder(), 'backup');
    mkdirSync(target, { mode: 0o700 });
    chownSync(target, OTHER, OTHER);
    expect((await fuel('store', 'backup', target)).stderr).toContain('belongs to user id 65534');
    expect(readdirSync(target)).toEqual([]);
  });
});
