import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificate } from '../certificate.ts';
import type { Env } from './commands.ts';

interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
  readonly pem: string;
}

/** Writes a certificate for 127.0.0.1 into two files of the folder, replacing existing ones. */
export async function writeCertificate(folder: string): Promise<CertificateFiles> {
  const { cert, key } = await makeCertificate();
  const files = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
  writeFileSync(files.certPath, cert);
  writeFileSync(files.keyPath, key);
  return { ...files, pem: cert };
}

export const SEAL_KEY = `-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n`;

/** The settings that production requires. */
export function productionEnv({ certPath, keyPath }: CertificateFiles): Env {
  return {
    FUEL_ENVIRONMENT: 'production',
    FUEL_TLS_CERT: certPath,
    FUEL_TLS_KEY: keyPath,
    FUEL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    FUEL_SEAL_KEY: SEAL_KEY,
    FUEL_IMAGES_ENDPOINT: 'https://s3.example.net:9000',
    FUEL_IMAGES_REGION: 'eu-central-1',
    FUEL_IMAGES_BUCKET: 'pictures',
    FUEL_IMAGES_ACCESS_KEY_ID: 'AKIATEST',
    FUEL_IMAGES_SECRET_ACCESS_KEY: 'image-secret-of-production',
    FUEL_SMTP_URL: 'smtp://user:smtp-password@mail.example.net',
    FUEL_MAIL_FROM: 'fuel@example.net',
    FUEL_OPERATOR_EMAIL: 'operator@example.net',
  };
}
