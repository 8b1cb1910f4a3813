import { existsSync, statSync } from 'node:fs';
import { findMasterKeys } from '../../accounts/master-key.ts';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { registry as REGISTRY, type Registry } from '../../engines/engines.ts';
import { generatedCertificate, readCertificate } from '../../pull/server/certificate.ts';
import { readPem, trustedAuthorities } from '../../push/sender/trusted-authorities.ts';
import { type Finding, right, wrong } from './check.ts';

/** Whether `fuel serve` would start with these settings and the files that they name. */
export async function checkConfiguration(
  env: Readonly<Record<string, string | undefined>>,
  config: Config,
  registry: Registry,
): Promise<Finding> {
  const { faults } = registry.showConfig(env);
  const misspelt = registry
    .unknownSettings(env)
    .flatMap(({ name, resembles }) =>
      resembles === null ? [] : [`${name} is no setting: did you mean ${resembles}?`],
    );
  const all = [...(faults.length > 0 ? faults : await faultsOfNamed(config, registry)), ...misspelt];
  if (all.length === 0) return right('valid for fuel serve');
  return wrong(
    all.join('; '),
    'correct these variables of the environment, and look at them with: fuel config show',
  );
}

/**
 * The faults of the files and connection strings that valid settings name, as lines that begin with the setting; empty if
 * `fuel serve` can use all of them. Creates nothing: files that a start generates may be missing.
 */
export async function faultsOfNamed(config: Config, registry = REGISTRY): Promise<string[]> {
  const checks = [checkDataDir, checkCertificate, checkMasterKey, checkAuthorities];
  const ofFiles = checks.flatMap((check) => faultOf(() => check(config)));
  return [...ofFiles, ...(await registry.faultsOfEngines(config))];
}

function checkDataDir({ FUEL_DATA_DIR: path }: Config): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === false)
    throw new FuelError('CONFIG_INVALID', `FUEL_DATA_DIR: ${path} is not a folder`);
}

function checkCertificate(config: Config): void {
  const { FUEL_TLS, FUEL_TLS_CERT: cert, FUEL_TLS_KEY: key } = config;
  if (FUEL_TLS === 'terminated') return;
  if (cert !== undefined && key !== undefined) readCertificate({ cert, key });
  else if (existsSync(generatedCertificate(config).cert)) readCertificate(generatedCertificate(config));
}

function checkMasterKey(config: Config): void {
  if (config.FUEL_ENVIRONMENT === 'production' && config.FUEL_MASTER_KEY === undefined) return; // reported already
  findMasterKeys(config);
}

function checkAuthorities({ FUEL_WEBHOOK_CA: path }: Config): void {
  if (path !== undefined) trustedAuthorities(readPem(path));
}

function faultOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException;
    const who = code === 'EACCES' ? ': run this as the user that owns it' : '';
    return [cause instanceof Error ? `${message} (${cause.message})` : `${message}${who}`];
  }
}
