import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../base/config/config.ts';
import { assertOwn } from '../base/config/own-files.ts';
import { writeOnce } from '../base/disk/write-once.ts';
import { FuelError } from '../base/errors.ts';
import { CheckpointSigner, VerifierKey } from './checkpoint.ts';

type KeyConfig = Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_SEAL_KEY' | 'FUEL_DATA_DIR'>;

const FILE = 'seal.key';

/** The name under which the log of a store is signed: checkpoints of several logs are told apart by it. */
export function originOf(storeId: string): string {
  return `fuel-integration/${storeId}`;
}

/**
 * What signs the checkpoints of the store's log: `FUEL_SEAL_KEY`, or in staging the key in `seal.key` of the data
 * directory, which is made on first use. `undefined` in production without one: then nothing is sealed. Throws
 * `CONFIG_INVALID` for a file without a key.
 */
export function openSigner(storeId: string, config: KeyConfig): CheckpointSigner | undefined {
  const key = config.FUEL_SEAL_KEY === undefined ? keyOfStaging(config) : privateKeyOf(config.FUEL_SEAL_KEY);
  return key && new CheckpointSigner(originOf(storeId), key);
}

function keyOfStaging({ FUEL_ENVIRONMENT, FUEL_DATA_DIR: dataDir }: KeyConfig): KeyObject | undefined {
  if (FUEL_ENVIRONMENT === 'production') return undefined;
  const path = join(dataDir, FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { privateKey } = generateKeyPairSync('ed25519');
  if (!writeOnce(path, privateKey.export({ format: 'pem', type: 'pkcs8' }) as string))
    assertOwn(path, 'file');
  return privateKeyOf(readFileSync(path, 'utf8'), path);
}

/** Throws `CONFIG_INVALID` for a text that is no Ed25519 private key in PEM; a line may end in the two letters `\n`. */
export function privateKeyOf(pem: string, place = 'FUEL_SEAL_KEY'): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem.replaceAll('\\n', '\n'));
  } catch {
    key = undefined; // its message would quote the text
  }
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new FuelError(
    'CONFIG_INVALID',
    `${place} must be an Ed25519 private key in PEM: openssl genpkey -algorithm ed25519`,
  );
}

/** The public key that is given, or that of the configuration. Rejects with `REFUSED` where there is none. */
export function verifierOf(storeId: string, config: KeyConfig, given?: string): VerifierKey {
  const verifier = given === undefined ? openSigner(storeId, config)?.verifier : VerifierKey.parse(given);
  if (verifier !== undefined) return verifier;
  throw new FuelError('REFUSED', 'name the public key with --key, or set FUEL_SEAL_KEY');
}
