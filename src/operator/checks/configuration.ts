import { X509Certificate } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { findMasterKeys } from '../../accounts/master-key.ts';
import { type CertificateFiles, readCertificate } from '../../base/config/certificate-files.ts';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { registry as REGISTRY } from '../../engines/engines.ts';
import { certificatePaths } from '../../pull/server/certificate.ts';
import { CLIENT_CERTIFICATE, clientCertificateFiles } from '../../push/sender/sender.ts';
import { readPem, trustedAuthorities } from '../../push/sender/trusted-authorities.ts';
import { type DoctorFacts, type Finding, right, wrong } from './check.ts';
import type { Facts } from './facts.ts';

/** People need this long to renew a certificate. */
const RENEWAL_MS = 14 * DAY_MS;

/** Checks that `fuel serve` would start with these settings and the files that they name. */
export async function checkConfiguration({
  env,
  config,
  registry,
}: Pick<DoctorFacts, 'env' | 'config' | 'registry'>): Promise<Finding> {
  const { faults } = registry.showConfig(env);
  const misspelt = registry
    .unknownSettings(env)
    .flatMap(({ name, resembles }) =>
      resembles === null ? [] : [`${name} is not a setting: did you mean ${resembles}?`],
    );
  const all = [...(faults.length > 0 ? faults : await faultsOfNamed(config, registry)), ...misspelt];
  if (all.length === 0) return right('valid for fuel serve');
  return wrong(all.join('; '), 'correct these environment variables; fuel config show lists them all');
}

/**
 * Returns the faults of the files and connection strings that valid settings name, as lines that begin with the setting;
 * empty if `fuel serve` can use all of them. Creates nothing: files that a start generates may be missing.
 */
export async function faultsOfNamed(config: Config, registry = REGISTRY): Promise<string[]> {
  const ofFiles = READ.flatMap((read) => faultOf(() => read(config)));
  return [...ofFiles, ...(await registry.faultsOfEngines(config))];
}

/** The files that a start reads. Each function throws if it can't use its file. */
const READ: readonly ((config: Config) => void)[] = [
  ({ FUEL_DATA_DIR: path }) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false)
      throw new FuelError('CONFIG_INVALID', `FUEL_DATA_DIR: ${path} is not a folder`);
  },
  (config) => {
    const { files, isGenerated } = certificatePaths(config);
    if (config.FUEL_TLS === 'terminated' || (isGenerated && !existsSync(files.cert))) return;
    readCertificate(files);
  },
  (config) => {
    if (config.FUEL_ENVIRONMENT === 'production' && config.FUEL_MASTER_KEY === undefined) return; // reported already
    findMasterKeys(config);
  },
  ({ FUEL_WEBHOOK_CA: path }) => {
    if (path !== undefined) trustedAuthorities(readPem(path));
  },
  (config) => {
    const files = clientCertificateFiles(config);
    if (files !== undefined) readCertificate(files, CLIENT_CERTIFICATE);
  },
];

function faultOf(read: () => void): string[] {
  try {
    read();
    return [];
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException;
    const who = code === 'EACCES' ? ': run this as the user that owns it' : '';
    return [cause instanceof Error ? `${message} (${cause.message})` : `${message}${who}`];
  }
}

/** Checks the certificate that customers see: its names, its end, and that the key belongs to it. */
export function checkCertificate({
  config,
  clock,
  process,
}: Pick<Facts, 'clock' | 'process'> & { readonly config: CertificateConfig }): Finding {
  if (process?.roles.includes('api') === false) return right('this process has no role api');
  if (config.FUEL_TLS === 'terminated') return right('FUEL_TLS is terminated: a proxy has the certificate');
  const { files, isGenerated } = certificatePaths(config);
  if (isGenerated && !existsSync(files.cert)) return right('the first start makes a self-signed certificate');
  const renew = isGenerated
    ? `rm ${files.cert} ${files.key}, and restart fuel serve, which makes new ones`
    : renewalOf(files);
  return judgeCertificate(files, { renew, clock, namesHost: true });
}

/** Checks the certificate that receivers see, if one is configured. */
export function checkClientCertificate({ config, clock }: Pick<Facts, 'config' | 'clock'>): Finding {
  const files = clientCertificateFiles(config);
  if (files === undefined) return right('no certificate is shown to receivers');
  const renew = renewalOf(files);
  return judgeCertificate(files, { renew, clock, prefix: CLIENT_CERTIFICATE, namesHost: false });
}

function renewalOf(files: CertificateFiles): string {
  return `put a new certificate into ${files.cert} and its key into ${files.key}: they are read again without a restart`;
}

interface Judging extends Pick<Facts, 'clock'> {
  /** The advice for a certificate that has to be renewed. */
  readonly renew: string;
  readonly prefix?: string;
  /** True if its names are checked by others, so that it must have one. */
  readonly namesHost: boolean;
}

function judgeCertificate(files: CertificateFiles, { renew, clock, prefix, namesHost }: Judging): Finding {
  let read: X509Certificate;
  try {
    read = new X509Certificate(readCertificate(files, prefix).cert);
  } catch (error) {
    const { message, cause } = error as Error;
    return wrong(`${message} (${(cause as Error | undefined)?.message})`, renew);
  }
  const { subjectAltName, validFromDate, validToDate } = read;
  const names = subjectAltName ?? read.subject.replaceAll('\n', ', ');
  if (namesHost && subjectAltName === undefined)
    return wrong(`${files.cert} names no host (subjectAltName)`, renew);
  const leftMs = validToDate.getTime() - clock.now();
  const detail = `for ${names}, until ${validToDate.toISOString().slice(0, 10)} (${inDays(leftMs)})`;
  if (validFromDate.getTime() > clock.now())
    return wrong(`the certificate is not valid before ${validFromDate.toISOString()}`, renew);
  if (leftMs < 0) return wrong(`the certificate has expired: ${detail}`, renew);
  return leftMs < RENEWAL_MS ? wrong(`the certificate expires soon: ${detail}`, renew) : right(detail);
}

type CertificateConfig = Pick<Config, 'FUEL_TLS' | 'FUEL_TLS_CERT' | 'FUEL_TLS_KEY' | 'FUEL_DATA_DIR'>;

function inDays(leftMs: number): string {
  const days = Math.floor(Math.abs(leftMs) / DAY_MS);
  const text = days === 0 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`;
  return leftMs < 0 ? `expired ${text} ago` : `${text} left`;
}
