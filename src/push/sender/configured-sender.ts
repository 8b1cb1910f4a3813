import { readFileSync } from 'node:fs';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { createSender } from './sender.ts';
import type { Sender } from './sender-port.ts';

/** The webhook sender by the configuration. Throws `CONFIG_INVALID` where `FUEL_WEBHOOK_CA` can't be used. */
export async function configuredSender(
  config: Pick<Config, 'FUEL_WEBHOOK_ALLOW_PRIVATE' | 'FUEL_WEBHOOK_CA'>,
): Promise<Sender> {
  const { FUEL_WEBHOOK_ALLOW_PRIVATE: allowPrivate, FUEL_WEBHOOK_CA: file } = config;
  return createSender({ allowPrivate, extraCa: file === undefined ? undefined : readPem(file) });
}

/** Throws `CONFIG_INVALID` where the file of `FUEL_WEBHOOK_CA` can't be read. */
export function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new FuelError('CONFIG_INVALID', `FUEL_WEBHOOK_CA: ${file} can't be read`, { cause });
  }
}
