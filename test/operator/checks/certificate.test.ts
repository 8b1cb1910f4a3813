import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkCertificate } from '../../../src/operator/checks/configuration.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { said } from '../../support/checks/facts.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const DAY_MS = 86_400_000;

type Config = Parameters<typeof checkCertificate>[0]['config'];

const check = (config: Config, nowMs = Date.now()) =>
  said(checkCertificate({ config, clock: { now: () => nowMs }, process: undefined }));

async function terms({ fits = true } = {}) {
  const folder = temporaryFolder();
  const files = { cert: join(folder, 'tls-cert.pem'), key: join(folder, 'tls-key.pem') };
  const [made, other] = [await makeCertificate(), fits ? undefined : await makeCertificate()];
  writeFileSync(files.cert, made.cert);
  writeFileSync(files.key, (other ?? made).key);
  const { validToDate } = new (await import('node:crypto')).X509Certificate(made.cert);
  const config = {
    FUEL_TLS: 'served' as const,
    FUEL_DATA_DIR: folder,
    ...{ FUEL_TLS_CERT: files.cert, FUEL_TLS_KEY: files.key },
  };
  return { config, endMs: validToDate.getTime() };
}

test('a certificate that lasts is right, with its names and its end', async () => {
  const finding = await check((await terms()).config);
  expect(finding).toMatchObject({
    ok: true,
    detail: expect.stringMatching(/for DNS:localhost, .*until \d{4}-/),
  });
});

test('a certificate is wrong less than 14 days before its end, after it, and before its beginning', async () => {
  const given = await terms();
  const at = (nowMs: number) => check(given.config, nowMs);
  expect(await at(given.endMs - 14 * DAY_MS)).toMatchObject({ ok: true });
  expect(await at(given.endMs - 14 * DAY_MS + 1)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('expires soon'),
    do: expect.stringContaining(`put a new certificate into ${given.config.FUEL_TLS_CERT}`),
  });
  for (const [days, text] of [
    [-20.5, '20 days left'],
    [-1.5, '1 day left'],
    [0.5, 'expired less than a day ago'],
    [2, 'expired 2 days ago'],
  ] as const) {
    expect(await at(given.endMs + days * DAY_MS)).toMatchObject({
      detail: expect.stringContaining(`(${text})`),
    });
  }
  expect(await at(given.endMs + 1)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('has expired'),
  });
  expect(await at(0)).toMatchObject({ ok: false, detail: expect.stringContaining('not valid before') });
});

test('a key of another certificate is wrong, and so is a file that is missing', async () => {
  const { config } = await terms({ fits: false });
  expect(await check(config)).toMatchObject({ ok: false });
  const missing = { ...config, FUEL_TLS_CERT: '/nowhere/cert.pem', FUEL_TLS_KEY: '/nowhere/key.pem' };
  expect(await check(missing)).toMatchObject({ ok: false, detail: expect.stringContaining('ENOENT') });
  const generated = { ...config, FUEL_TLS_CERT: undefined, FUEL_TLS_KEY: undefined };
  expect(await check(generated)).toMatchObject({
    ok: false,
    do: expect.stringMatching(/^rm .*tls-cert.pem/),
  });
  expect(await check({ ...generated, FUEL_DATA_DIR: temporaryFolder() })).toMatchObject({ ok: true });
});

test('behind a proxy that ends TLS there is no certificate to check', async () => {
  const { config } = await terms({ fits: false });
  expect(await check({ ...config, FUEL_TLS: 'terminated' })).toMatchObject({ ok: true });
});
