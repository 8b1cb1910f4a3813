import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, unwatchFile, watchFile } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { ownFolder } from '../../base/config/own-files.ts';
import { writeOnce } from '../../base/disk/write-once.ts';
import { FuelError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';

/** A certificate and its private key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The paths of the two files. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

const RELOAD_CHECK_MS = 1_000;
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

/** Returns when the certificate ends, in milliseconds since the epoch. */
export function certificateEnd({ cert }: Pick<Certificate, 'cert'>): number {
  return new X509Certificate(cert).validToDate.getTime();
}

/** Reads both files and checks that they belong together. Throws `CONFIG_INVALID` with their names. */
export function readCertificate(files: CertificateFiles): Certificate {
  try {
    const certificate = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
    createSecureContext(certificate);
    return certificate;
  } catch (error) {
    throw new FuelError(
      'CONFIG_INVALID',
      `FUEL_TLS_CERT, FUEL_TLS_KEY: ${files.cert} and ${files.key} can't be used`,
      {
        cause: error,
      },
    );
  }
}

/**
 * Calls `reload` when either file changes. If the new pair can't be used, it is logged and the old one stays in use.
 */
export function watchCertificate(
  files: CertificateFiles,
  log: Log,
  reload: (certificate: Certificate) => void,
): { stop(): void } {
  const changed = (): void => {
    try {
      reload(readCertificate(files));
      log.info({ file: files.cert }, 'certificate reloaded');
    } catch (error) {
      // A renewal writes the two files one after the other. They fit again after the second change.
      log.warn({ err: error }, 'changed certificate not usable; the old one stays in use');
    }
  };
  const watched = [files.cert, files.key];
  for (const file of watched) watchFile(file, { interval: RELOAD_CHECK_MS }, changed);
  return {
    stop() {
      for (const file of watched) unwatchFile(file, changed);
    },
  };
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
