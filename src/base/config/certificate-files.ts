import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { FuelError } from '../errors.ts';
import type { Log } from '../log.ts';

const RELOAD_CHECK_MS = 1_000;

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

/** Returns when the certificate ends, in milliseconds since the epoch. */
export function certificateEnd({ cert }: Pick<Certificate, 'cert'>): number {
  return new X509Certificate(cert).validToDate.getTime();
}

/**
 * Reads both files and checks that they belong together. Throws `CONFIG_INVALID` with their names, and with those of the
 * settings that name them, which begin with `prefix`.
 */
export function readCertificate(files: CertificateFiles, prefix = 'FUEL_TLS'): Certificate {
  try {
    const certificate = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
    createSecureContext(certificate);
    // TLS itself compares only keys of the same kind.
    if (!new X509Certificate(certificate.cert).checkPrivateKey(createPrivateKey(certificate.key)))
      throw new Error('the key belongs to another certificate');
    return certificate;
  } catch (error) {
    throw new FuelError(
      'CONFIG_INVALID',
      `${prefix}_CERT, ${prefix}_KEY: ${files.cert} and ${files.key} can't be used`,
      { cause: error },
    );
  }
}

/**
 * Calls `reload` when either file changes. If the new pair can't be used, it is logged and the old one stays in use.
 */
export function watchCertificate(
  { files, prefix, log }: { readonly files: CertificateFiles; readonly prefix?: string; readonly log: Log },
  reload: (certificate: Certificate) => void,
): { stop(): void } {
  const changed = (): void => {
    try {
      reload(readCertificate(files, prefix));
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
