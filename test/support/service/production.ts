import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import type { Env } from './commands.ts';

export interface TestCertificate {
  readonly certPath: string;
  readonly keyPath: string;
  readonly pem: string;
}

/** A certificate for 127.0.0.1 in two files of the folder, written over those that were there. */
export async function writeCertificate(folder: string): Promise<TestCertificate> {
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  });
  const files = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
  writeFileSync(files.certPath, made.cert);
  writeFileSync(files.keyPath, made.private);
  return { ...files, pem: made.cert };
}

/** Everything that production asks for. */
export function productionEnv({ certPath, keyPath }: TestCertificate): Env {
  return {
    FUEL_ENVIRONMENT: 'production',
    FUEL_TLS_CERT: certPath,
    FUEL_TLS_KEY: keyPath,
    FUEL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
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
