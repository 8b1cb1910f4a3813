import { existsSync, statSync } from 'node:fs';
import { findMasterKeys } from '../accounts/master-key.ts';
import type { Config } from '../config/config.ts';
import { readPem } from '../deliveries/sender/configured-sender.ts';
import { trustedAuthorities } from '../deliveries/sender/trusted-authorities.ts';
import { FuelError } from '../errors.ts';
import { generatedCertificate, readCertificate } from '../http/server/certificate.ts';

/**
 * What is wrong with the files that valid settings name, as lines that begin with the setting; empty where `fuel serve`
 * can use them all. Makes nothing: what is generated at a start may be missing.
 */
export function faultsOfFiles(config: Config): string[] {
  const checks = [checkDataDir, checkCertificate, checkMasterKey, checkAuthorities];
  return checks.flatMap((check) => faultOf(() => check(config)));
}

function checkDataDir({ FUEL_DATA_DIR: path }: Config): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === false)
    throw new FuelError('CONFIG_INVALID', `FUEL_DATA_DIR: ${path} is no folder`);
}

function checkCertificate(config: Config): void {
  const { FUEL_TLS, FUEL_TLS_CERT: cert, FUEL_TLS_KEY: key } = config;
  if (FUEL_TLS === 'terminated') return;
  if (cert !== undefined && key !== undefined) readCertificate({ cert, key });
  else if (existsSync(generatedCertificate(config).cert)) readCertificate(generatedCertificate(config));
}

function checkMasterKey(config: Config): void {
  if (config.FUEL_ENVIRONMENT === 'production' && config.FUEL_MASTER_KEY === undefined) return; // told already
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
    const { message, cause } = error as Error;
    return [cause instanceof Error ? `${message} (${cause.message})` : message];
  }
}
