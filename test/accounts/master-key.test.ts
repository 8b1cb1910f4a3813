import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { MasterKeys, openMasterKeys, otherKeyFile } from '../../src/accounts/master-key.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const oldKey = randomBytes(32);
const newKey = randomBytes(32);
const prefix = 'abcdefghij';
const secret = 'S'.repeat(43);
const staging = (dataDir: string) =>
  ({ FUEL_ENVIRONMENT: 'staging', FUEL_MASTER_KEY: undefined, FUEL_DATA_DIR: dataDir }) as const;

describe('a webhook secret', () => {
  test('decrypts to what was encrypted, and looks different each time', () => {
    const keys = new MasterKeys([oldKey]);
    const [one, other] = [keys.encryptSecret({ prefix, secret }), keys.encryptSecret({ prefix, secret })];
    expect(keys.decryptSecret(prefix, one)).toBe(secret);
    expect(one.ciphertext).not.toBe(other.ciphertext);
    expect(one.master_key_id).toMatch(/^[0-9a-f]{8}$/);
  });

  test('is encrypted with the first master key and decrypted with any', () => {
    const before = new MasterKeys([oldKey]).encryptSecret({ prefix, secret });
    const both = new MasterKeys([newKey, oldKey]);
    expect(both.decryptSecret(prefix, before)).toBe(secret);
    expect(new MasterKeys([newKey]).decryptSecret(prefix, both.encryptSecret({ prefix, secret }))).toBe(
      secret,
    );
  });

  test('has a form that never changes: one that was stored is read', () => {
    const recorded = {
      master_key_id: '72cd6e84',
      nonce: 'NIKYB0Cz1zw3UntW',
      ciphertext: 'wgKexdvStUKFtZ/eOj7JcEQ6vZWO0dPEaNapmnaknGXHKQeeVO8vJw/UlQ==',
      tag: 'irk/ULwGfYhuGdX6XQ04RA==',
    };
    const keys = new MasterKeys([newKey, Buffer.alloc(32, 1)]);
    expect(keys.decryptSecret(prefix, recorded)).toBe(secret);
    expect(new MasterKeys([Buffer.alloc(32, 1)]).encryptSecret({ prefix, secret }).master_key_id).toBe(
      '72cd6e84',
    );
  });

  test('whose master key is not there is named with that key', () => {
    const encrypted = new MasterKeys([oldKey]).encryptSecret({ prefix, secret });
    expect(() => new MasterKeys([newKey]).decryptSecret(prefix, encrypted)).toThrow(
      expect.objectContaining({
        code: 'SECRET_UNREADABLE',
        message: expect.stringContaining(`master key ${encrypted.master_key_id}`),
      }),
    );
  });

  test('encrypted for one prefix cannot be decrypted for another', () => {
    const keys = new MasterKeys([oldKey]);
    const encrypted = keys.encryptSecret({ prefix, secret });
    expect(() => keys.decryptSecret('klmnopqrst', encrypted)).toThrow(
      expect.objectContaining({ code: 'SECRET_UNREADABLE', cause: expect.any(Error) }),
    );
  });

  test.each(['nonce', 'ciphertext', 'tag'] as const)('with a changed or cut %s is refused', (part) => {
    const keys = new MasterKeys([oldKey]);
    const encrypted = keys.encryptSecret({ prefix, secret });
    const bytes = Buffer.from(encrypted[part], 'base64');
    const cut = bytes.subarray(0, 4).toString('base64');
    bytes.writeUInt8(bytes.readUInt8(0) ^ 1);
    for (const broken of [bytes.toString('base64'), cut, '']) {
      const changed = { ...encrypted, [part]: broken };
      expect(() => keys.decryptSecret(prefix, changed)).toThrow(/was changed/);
    }
  });
});

describe('derived keys', () => {
  test('come one for each master key, the current one first, the same in every process', () => {
    const derived = new MasterKeys([newKey, oldKey]).deriveKeys('cursor');
    const alone = [
      ...new MasterKeys([newKey]).deriveKeys('cursor'),
      ...new MasterKeys([oldKey]).deriveKeys('cursor'),
    ];
    expect(derived).toEqual(alone);
    expect(derived.map((key) => key.length)).toEqual([32, 32]);
  });

  test('never change: what they protect outlives an update', () => {
    const [derived] = new MasterKeys([Buffer.alloc(32, 1)]).deriveKeys('cursor');
    expect(derived?.toString('hex')).toBe('7bdf64d70abdb550ba774eaaa688a64685090930738aa7c9f2b019d5437b3053');
  });

  test('differ by purpose', () => {
    const keys = new MasterKeys([oldKey]);
    expect(keys.deriveKeys('cursor')).not.toEqual(keys.deriveKeys('other'));
  });
});

test.each([[[]], [[randomBytes(16)]], [[oldKey, randomBytes(33)]]])('master keys have 32 bytes', (keys) => {
  expect(() => new MasterKeys(keys)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
});

describe('the generated master key', () => {
  test('is made in the data directory for its owner alone, and found there again', () => {
    const dataDir = join(temporaryFolder(), 'data');
    const encrypted = openMasterKeys(staging(dataDir)).encryptSecret({ prefix, secret });
    expect(readdirSync(dataDir)).toEqual(['master.key']);
    expect(statSync(join(dataDir, 'master.key')).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(openMasterKeys(staging(dataDir)).decryptSecret(prefix, encrypted)).toBe(secret);
  });

  test('is not made where keys are configured', () => {
    const dataDir = temporaryFolder();
    openMasterKeys({ ...staging(dataDir), FUEL_MASTER_KEY: [oldKey] });
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test('is never made in production', () => {
    const dataDir = temporaryFolder();
    expect(() => openMasterKeys({ ...staging(dataDir), FUEL_ENVIRONMENT: 'production' })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    );
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test.each(['broken\n', '', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')])(
    'is refused, and left as it is, when the file holds something else: %j',
    (text) => {
      const dataDir = temporaryFolder();
      writeFileSync(join(dataDir, 'master.key'), text);
      expect(() => openMasterKeys(staging(dataDir))).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
      expect(readFileSync(join(dataDir, 'master.key'), 'utf8')).toBe(text);
    },
  );

  test('is refused when the file cannot be read', () => {
    const dataDir = temporaryFolder();
    mkdirSync(join(dataDir, 'master.key'));
    expect(() => openMasterKeys(staging(dataDir))).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining('EISDIR') }),
    );
    expect(readdirSync(dataDir)).toEqual(['master.key']);
  });

  test('is the same for processes that make it at once', async () => {
    const dataDir = temporaryFolder();
    const module = new URL('../../src/accounts/master-key.ts', import.meta.url).href;
    const script = `import { openMasterKeys } from ${JSON.stringify(module)};
      const keys = openMasterKeys({ FUEL_ENVIRONMENT: 'staging', FUEL_MASTER_KEY: undefined, FUEL_DATA_DIR: ${JSON.stringify(dataDir)} });
      process.stdout.write(keys.deriveKeys('test').map((key) => key.toString('hex')).join());`;
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    const outputs = (await Promise.all([run(), run(), run(), run()])).map(({ stdout }) => stdout);
    expect(new Set(outputs).size).toBe(1);
    expect(outputs[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(readdirSync(dataDir)).toEqual(['master.key']);
  });
});

test('a generated master key that the configured ones lack is found, except in production', () => {
  const FUEL_DATA_DIR = temporaryFolder();
  const staging = { FUEL_ENVIRONMENT: 'staging', FUEL_DATA_DIR } as const;
  const rotated = { ...staging, FUEL_MASTER_KEY: [newKey] };
  expect(otherKeyFile(rotated)).toBeUndefined();
  const path = join(FUEL_DATA_DIR, 'master.key');
  writeFileSync(path, `${oldKey.toString('base64')}\n`);
  expect(otherKeyFile({ ...staging, FUEL_MASTER_KEY: undefined })).toBeUndefined();
  expect(otherKeyFile({ ...staging, FUEL_MASTER_KEY: [newKey, oldKey] })).toBeUndefined();
  expect(otherKeyFile(rotated)).toBe(path);
  expect(otherKeyFile({ ...rotated, FUEL_ENVIRONMENT: 'production' })).toBeUndefined();
});
