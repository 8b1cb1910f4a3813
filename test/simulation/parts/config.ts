import type { Config } from '../../../src/base/config/config.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { PROXY } from './process.ts';

export const RETENTION_DAYS = 10;
/** An Ed25519 key (PKCS #8) from a fixed seed. */
const SEAL_KEY_DER = Buffer.concat([
  Buffer.from('302e020100300506032b657004220420', 'hex'),
  Buffer.alloc(32, 9),
]);
const SEAL_KEY = `-----BEGIN PRIVATE KEY-----\n${SEAL_KEY_DER.toString('base64')}\n-----END PRIVATE KEY-----\n`;

/** The configuration of all simulated processes. `folder` is empty and stays so. */
export function simulatedConfig(folder: string): Config {
  return loadConfig(
    {
      FUEL_DATA_DIR: folder,
      FUEL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      FUEL_SEAL_KEY: SEAL_KEY,
      FUEL_TLS: 'terminated',
      FUEL_TRUSTED_PROXIES: `${PROXY}/32`,
      FUEL_SMTP_URL: 'smtp://mail.example',
      FUEL_OPERATOR_EMAIL: 'operator@fuel.example',
      FUEL_DELIVERY_RETENTION_DAYS: String(RETENTION_DAYS),
    },
    'command',
  );
}
