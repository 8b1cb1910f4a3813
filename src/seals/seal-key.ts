import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../base/config/config.ts';
import { assertOwn } from '../base/config/own-files.ts';
import { writeOnce } from '../base/disk/write-once.ts';
import { FuelError } from '../base/errors.ts';
import { CheckpointSigner, LogVerifier } from './checkpoint.ts';

type KeyConfig = Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_SEAL_KEY' | 'FUEL_DATA_DIR'>;

const FILE = 'seal.key';
const BLOCK = /-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g;

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
  const { FUEL_SEAL_KEY: given } = config;
  const keys = given === undefined ? keysOfStaging(config) : sealKeysIn(given);
  return keys && new CheckpointSigner(originOf(storeId), keys);
}

function keysOfStaging({
  FUEL_ENVIRONMENT,
  FUEL_DATA_DIR: dataDir,
}: KeyConfig): readonly KeyObject[] | undefined {
  if (FUEL_ENVIRONMENT === 'production') return undefined;
  const path = join(dataDir, FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { privateKey } = generateKeyPairSync('ed25519');
  if (!writeOnce(path, privateKey.export({ format: 'pem', type: 'pkcs8' }) as string))
    assertOwn(path, 'file');
  return sealKeysIn(readFileSync(path, 'utf8'), path);
}

/**
 * Keys in PEM, one after the other; a line may end in the two letters `\n`. The first signs: while a key is replaced, the one
 * before it signs too, or stands there as a public key, for what it signed. Throws `CONFIG_INVALID` for another text.
 */
export function sealKeysIn(pem: string, place = 'FUEL_SEAL_KEY'): readonly KeyObject[] {
  const text = pem.replaceAll('\\n', '\n');
  try {
    const keys = (text.match(BLOCK) ?? [text]).map((block) =>
      block.includes('PRIVATE') ? createPrivateKey(block) : createPublicKey(block),
    );
    if (keys[0]?.type === 'private' && keys.every((key) => key.asymmetricKeyType === 'ed25519')) return keys;
  } catch {
    // its message would quote the text
  }
  throw new FuelError(
    'CONFIG_INVALID',
    `${place} must be an Ed25519 private key in PEM: openssl genpkey -algorithm ed25519. Former keys may follow it`,
  );
}

/** The public keys that are given, or those of the configuration. Throws `REFUSED` where there is none. */
export function verifierOf(storeId: string, config: KeyConfig, given?: string): LogVerifier {
  const verifier = given === undefined ? openSigner(storeId, config)?.verifier : LogVerifier.parse(given);
  if (verifier !== undefined) return verifier;
  throw new FuelError('REFUSED', 'name the public key with --key, or set FUEL_SEAL_KEY');
}
