import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../base/config/config.ts';
import { assertOwn, ownFolder } from '../base/config/own-files.ts';
import { writeOnce } from '../base/disk/write-once.ts';
import { FuelError } from '../base/errors.ts';
import { world } from '../base/world.ts';
import type { Ciphertext } from '../domain/account-events.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FILE = 'master.key';
const FINGERPRINT = 'fuel: fingerprint of a master key';
const FINGERPRINT_BYTES = 8;

type KeyConfig = Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_MASTER_KEY' | 'FUEL_DATA_DIR'>;

interface MasterKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** The identity of a master key, which does not disclose the key. Ciphertexts contain the id. */
export interface MasterKeyIdentity {
  readonly fingerprint: string;
  readonly master_key_id: string;
}

/** The master keys of a deployment: the first encrypts webhook secrets, all of them decrypt. */
export class MasterKeys {
  readonly #keys: readonly MasterKey[];
  readonly #current: MasterKey;

  /** Takes at least one key, each of 32 bytes. */
  constructor(keys: readonly Buffer[]) {
    this.#keys = keys.map((bytes) => ({ id: hash('sha256', bytes).slice(0, 8), bytes }));
    const [current] = this.#keys;
    if (current === undefined || keys.some((bytes) => bytes.length !== KEY_BYTES)) {
      throw new FuelError(
        'CONFIG_INVALID',
        `FUEL_MASTER_KEY: must have at least one key, each of ${KEY_BYTES} bytes`,
      );
    }
    this.#current = current;
  }

  /** Encrypts a key's webhook secret. It can be decrypted only with the same prefix. */
  encryptSecret({ prefix, secret }: { readonly prefix: string; readonly secret: string }): Ciphertext {
    const nonce = world.randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#current.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(prefix));
    const encrypted = Buffer.concat([cipher.update(secret), cipher.final()]);
    return {
      master_key_id: this.#current.id,
      nonce: nonce.toString('base64'),
      ciphertext: encrypted.toString('base64'),
      tag: cipher.getAuthTag().toString('base64'),
    };
  }

  /** True if one of the master keys has this id. */
  has(id: string): boolean {
    return this.#keys.some((key) => key.id === id);
  }

  /** True if the first master key encrypted this. */
  isCurrent({ master_key_id: id }: Ciphertext): boolean {
    return id === this.#current.id;
  }

  /** Throws `SECRET_UNREADABLE` if the master key is missing, or the text is not what was encrypted for the prefix. */
  decryptSecret(prefix: string, encrypted: Ciphertext): string {
    const masterKey = this.#keys.find((key) => key.id === encrypted.master_key_id);
    if (masterKey === undefined) {
      throw new FuelError(
        'SECRET_UNREADABLE',
        `the webhook secret of key ${prefix} was encrypted with master key ${encrypted.master_key_id}, which ` +
          'is not in FUEL_MASTER_KEY. Add it there',
      );
    }
    try {
      const nonce = Buffer.from(encrypted.nonce, 'base64');
      const decipher = createDecipheriv(CIPHER, masterKey.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(prefix));
      decipher.setAuthTag(Buffer.from(encrypted.tag, 'base64'));
      const parts = [decipher.update(Buffer.from(encrypted.ciphertext, 'base64')), decipher.final()];
      return Buffer.concat(parts).toString();
    } catch (cause) {
      const message = `the webhook secret of key ${prefix} was changed, or encrypted for another key. Issue a new key`;
      throw new FuelError('SECRET_UNREADABLE', message, { cause });
    }
  }

  /** The identities of the keys, in the same order. */
  identities(): MasterKeyIdentity[] {
    const derived = this.deriveKeys(FINGERPRINT);
    return this.#keys.map(({ id }, at) => ({
      fingerprint: derived[at]?.toString('hex', 0, FINGERPRINT_BYTES) ?? '',
      master_key_id: id,
    }));
  }

  /** Derives keys of 32 bytes for one purpose by HKDF-SHA256, one from each master key. The first one is current. */
  deriveKeys(purpose: string): Buffer[] {
    return this.#keys.map(({ bytes }) => Buffer.from(hkdfSync('sha256', bytes, '', purpose, KEY_BYTES)));
  }
}

/**
 * Returns the configured master keys. In staging, if none is configured, it takes the one in `master.key` in the data
 * directory, which is created on first use. Throws `CONFIG_INVALID` in production if none is configured, and if that
 * file holds no valid key.
 */
export function openMasterKeys(config: KeyConfig): MasterKeys {
  const { FUEL_DATA_DIR: dataDir } = config;
  return findMasterKeys(config) ?? new MasterKeys([toKey(create(dataDir, join(dataDir, FILE)), dataDir)]);
}

/** Does the same as `openMasterKeys`, but returns `undefined` instead of creating a key. */
export function findMasterKeys(config: KeyConfig): MasterKeys | undefined {
  if (config.FUEL_MASTER_KEY !== undefined) return new MasterKeys(config.FUEL_MASTER_KEY);
  if (config.FUEL_ENVIRONMENT === 'production') {
    throw new FuelError('CONFIG_INVALID', 'FUEL_MASTER_KEY: must be set in production');
  }
  const { FUEL_DATA_DIR: dataDir } = config;
  const text = readIfThere(join(dataDir, FILE));
  return text === undefined ? undefined : new MasterKeys([toKey(text, dataDir)]);
}

/**
 * Returns the path of a `master.key` whose key is not in FUEL_MASTER_KEY: a process without that setting would use it.
 * Returns `undefined` if there is no such file, and in production, where no key is taken from a file.
 */
export function otherKeyFile({
  FUEL_ENVIRONMENT,
  FUEL_MASTER_KEY,
  FUEL_DATA_DIR,
}: KeyConfig): string | undefined {
  if (FUEL_MASTER_KEY === undefined || FUEL_ENVIRONMENT === 'production') return undefined;
  const path = join(FUEL_DATA_DIR, FILE);
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text.trim(), 'base64');
  return FUEL_MASTER_KEY.some((key) => key.equals(bytes)) ? undefined : path;
}

function toKey(text: string, dataDir: string): Buffer {
  const path = join(dataDir, FILE);
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== KEY_BYTES) {
    throw new FuelError(
      'CONFIG_INVALID',
      `${path} does not hold ${KEY_BYTES} bytes in base64. Restore it, or set FUEL_MASTER_KEY`,
    );
  }
  return key;
}

/** Writes a new key so that a power cut can't lose it: the secrets encrypted with it would be lost too. */
function create(dataDir: string, path: string): string {
  ownFolder(dataDir);
  writeOnce(path, `${world.randomBytes(KEY_BYTES).toString('base64')}\n`);
  return readFileSync(path, 'utf8');
}

/** Reads the key file, if there is one. Throws `REFUSED` if others could replace it or look into its folder. */
function readIfThere(path: string): string | undefined {
  assertOwn(dirname(path), 'folder');
  assertOwn(path, 'file');
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new FuelError('CONFIG_INVALID', `${path}: ${(error as Error).message}`, { cause: error });
  }
}
