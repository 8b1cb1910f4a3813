import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { type CertificateFiles, readCertificate } from '../../pull/server/certificate.ts';
import { type Finding, right, wrong } from './check.ts';
import { verdictOf } from './table.ts';

export interface CertificateTerms {
  /** A proxy ends TLS. */
  readonly isTerminated: boolean;
  readonly files: CertificateFiles;
  /** The service made the files, and makes them again where they are missing. */
  readonly isGenerated: boolean;
  readonly nowMs: number;
}

/** The certificate that customers see: its names and its end, and that the key belongs to it. */
export function checkCertificate({ isTerminated, files, isGenerated, nowMs }: CertificateTerms): Finding {
  if (isTerminated) return right('FUEL_TLS is terminated: a proxy has the certificate');
  if (isGenerated && !existsSync(files.cert)) return right('the first start makes a self-signed certificate');
  const renew = isGenerated
    ? `rm ${files.cert} ${files.key}, and restart fuel serve, which makes new ones`
    : `put a new certificate into ${files.cert} and its key into ${files.key}: they are read again without a restart`;
  try {
    readCertificate(files);
  } catch (error) {
    const { message, cause } = error as Error;
    return wrong(`${message} (${(cause as Error | undefined)?.message})`, renew);
  }
  const certificate = new X509Certificate(readFileSync(files.cert));
  const { subjectAltName: names, validFromDate, validToDate } = certificate;
  if (names === undefined) return wrong(`${files.cert} names no host (subjectAltName)`, renew);
  const leftMs = validToDate.getTime() - nowMs;
  const detail = `for ${names}, until ${validToDate.toISOString().slice(0, 10)} (${inDays(leftMs)})`;
  if (validFromDate.getTime() > nowMs) return wrong(`not valid before ${validFromDate.toISOString()}`, renew);
  if (leftMs < 0) return wrong(`it has ended: ${detail}`, renew);
  const facts = { atMs: nowMs, certificateEndsAtMs: validToDate.getTime() };
  const isEnding = verdictOf('certificate', facts).problems.length > 0;
  return isEnding ? wrong(`it ends soon: ${detail}`, renew) : right(detail);
}

function inDays(leftMs: number): string {
  const days = Math.floor(Math.abs(leftMs) / DAY_MS);
  const text = days === 0 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`;
  return leftMs < 0 ? `ended ${text} ago` : `${text} left`;
}
