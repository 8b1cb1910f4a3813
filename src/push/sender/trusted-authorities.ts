import { constants, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates, type SecureContext } from 'node:tls';
import type { Certificate } from '../../base/config/certificate-files.ts';
import { FuelError } from '../../base/errors.ts';
import { network } from '../targets/network.ts';

/** A receiver that speaks TLS 1.2 can't ask for another handshake, which would cost this thread as much as the first. */
const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The certificate authorities that connections to receivers trust: the usual ones and those in `extraCa` (PEM). `shown` is
 * the certificate for receivers that ask for one. Throws `CONFIG_INVALID` if `extraCa` has none, or one that can't be read,
 * which TLS would ignore silently.
 */
export function trustedAuthorities(extraCa: string | undefined, shown?: Certificate): SecureContext {
  const usual = getCACertificates('default');
  const options = { ...shown, secureOptions };
  if (extraCa === undefined) return network.createSecureContext({ ...options, ca: usual });
  const ca = [...usual, ...readCertificates(extraCa)];
  // An authority that the operator names is trusted even if it is an intermediate.
  return network.createSecureContext({ ...options, ca, allowPartialTrustChain: true });
}

function readCertificates(pem: string): readonly string[] {
  const certificates = pem.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    throw new FuelError('CONFIG_INVALID', 'FUEL_WEBHOOK_CA: the file has no certificate');
  return certificates.map((text, index) => {
    try {
      return new X509Certificate(text).toString();
    } catch (error) {
      const message = `FUEL_WEBHOOK_CA: certificate ${index + 1} can't be read`;
      throw new FuelError('CONFIG_INVALID', message, { cause: error });
    }
  });
}

/** Reads the file of `FUEL_WEBHOOK_CA`. Throws `CONFIG_INVALID` if that fails. */
export function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new FuelError('CONFIG_INVALID', `FUEL_WEBHOOK_CA: ${file} can't be read`, { cause });
  }
}
