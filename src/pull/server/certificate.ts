import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { CertificateFiles } from '../../base/config/certificate-files.ts';
import type { Config } from '../../base/config/config.ts';
import { ownFolder } from '../../base/config/own-files.ts';
import { writeOnce } from '../../base/disk/write-once.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';

const GENERATED_FOR_DAYS = 825;

/** Returns the configured files, or in staging those of a self-signed certificate, which the first start generates. */
export async function certificateFiles(config: Config, log: Log): Promise<CertificateFiles> {
  const { files, isGenerated } = certificatePaths(config);
  if (!isGenerated) return files;
  if (!existsSync(files.cert) || !existsSync(files.key)) {
    ownFolder(config.FUEL_DATA_DIR);
    await generateInto(files);
    log.info({ file: files.cert }, 'generated a self-signed certificate for staging');
  }
  return files;
}

/** Returns the paths of the configured certificate, or of the generated one even if it does not exist yet. */
export function certificatePaths({
  FUEL_TLS_CERT: cert,
  FUEL_TLS_KEY: key,
  FUEL_DATA_DIR: folder,
}: Pick<Config, 'FUEL_TLS_CERT' | 'FUEL_TLS_KEY' | 'FUEL_DATA_DIR'>) {
  if (cert !== undefined && key !== undefined) return { files: { cert, key }, isGenerated: false };
  const files = { cert: join(folder, 'tls-cert.pem'), key: join(folder, 'tls-key.pem') };
  return { files, isGenerated: true };
}

/**
 * Generates a key and a certificate. If several processes start at once, all use the first key that is stored, then the
 * first certificate for it. A certificate whose key is missing is replaced.
 */
async function generateInto(files: CertificateFiles): Promise<void> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const isOurs = writeOnce(files.key, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  if (isOurs) await rm(files.cert, { force: true });
  writeOnce(files.cert, await selfSigned(readFileSync(files.key, 'utf8')));
}

async function selfSigned(privateKey: string): Promise<string> {
  const { generate } = await import('selfsigned'); // imported here, since it is large and only needed once
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) as string;
  const names = [...new Set(['localhost', world.self().host])];
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    keyPair: { privateKey, publicKey },
    algorithm: 'sha256',
    notAfterDate: new Date(systemClock.now() + GENERATED_FOR_DAYS * DAY_MS),
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          ...names.map((value) => ({ type: 2 as const, value })),
          { type: 7 as const, ip: '127.0.0.1' },
          { type: 7 as const, ip: '::1' },
        ],
      },
    ],
  });
  return made.cert;
}
