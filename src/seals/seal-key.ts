import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../base/config/config.ts';
import { assertOwn, ownFolder } from '../base/config/own-files.ts';
import { sealKeysIn } from '../base/config/seal-keys.ts';
import { writeOnce } from '../base/disk/write-once.ts';
import { FuelError, reasonOf } from '../base/errors.ts';
import { CheckpointSigner, LogVerifier } from './checkpoint.ts';

type KeyConfig = Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_SEAL_KEY' | 'FUEL_DATA_DIR'>;

const FILE = 'seal.key';

/** The name under which the log of a store is signed. It distinguishes the checkpoints of several logs. */
export function originOf(storeId: string): string {
  return `fuel-integration/${storeId}`;
}

/**
 * Returns the signer of the store's checkpoints. Its keys are those of `FUEL_SEAL_KEY`, or in staging the key in
 * `seal.key` in the data directory, which is created on first use. Throws `CONFIG_INVALID` in production if none is
 * configured, and if the file holds no key.
 */
export function openSigner(storeId: string, config: KeyConfig): CheckpointSigner {
  const { FUEL_SEAL_KEY: given } = config;
  const keys = given === undefined ? keysOfStaging(config) : sealKeysIn(given);
  return new CheckpointSigner(originOf(storeId), keys);
}

function keysOfStaging({ FUEL_ENVIRONMENT, FUEL_DATA_DIR: dataDir }: KeyConfig): readonly KeyObject[] {
  if (FUEL_ENVIRONMENT === 'production')
    throw new FuelError('CONFIG_INVALID', 'FUEL_SEAL_KEY: must be set in production');
  const path = join(dataDir, FILE);
  ownFolder(dataDir);
  const { privateKey } = generateKeyPairSync('ed25519');
  if (!writeOnce(path, privateKey.export({ format: 'pem', type: 'pkcs8' }) as string))
    assertOwn(path, 'file');
  try {
    return sealKeysIn(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new FuelError('CONFIG_INVALID', `${path} ${reasonOf(error)}`);
  }
}

/** Returns the given public keys, or those of the configuration. Throws `REFUSED` if there are none, and makes none. */
export function verifierOf(storeId: string, config: KeyConfig, given?: string): LogVerifier {
  if (given !== undefined) return LogVerifier.parse(given);
  if (config.FUEL_SEAL_KEY === undefined && config.FUEL_ENVIRONMENT === 'production')
    throw new FuelError(
      'REFUSED',
      'no public key to check the log with. Name it with --key, or set FUEL_SEAL_KEY',
    );
  const path = join(config.FUEL_DATA_DIR, FILE);
  if (config.FUEL_SEAL_KEY === undefined && !existsSync(path)) {
    throw new FuelError(
      'REFUSED',
      `the key of the seals is missing. Restore ${path}, set FUEL_SEAL_KEY, or name the public key with --key`,
    );
  }
  return openSigner(storeId, config).verifier;
}
