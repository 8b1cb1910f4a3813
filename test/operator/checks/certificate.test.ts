import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkCertificate } from '../../../src/operator/checks/certificate.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const DAY_MS = 86_400_000;

async function terms({ fits = true } = {}) {
  const folder = temporaryFolder();
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const [made, other] = [await makeCertificate(), fits ? undefined : await makeCertificate()];
  writeFileSync(files.cert, made.cert);
  writeFileSync(files.key, (other ?? made).key);
  const { validToDate } = new (await import('node:crypto')).X509Certificate(made.cert);
  return { isTerminated: false, files, isGenerated: false, nowMs: Date.now(), endMs: validToDate.getTime() };
}

test('a certificate that lasts is right, with its names and its end', async () => {
  const finding = checkCertificate(await terms());
  expect(finding).toMatchObject({
    ok: true,
    detail: expect.stringMatching(/for DNS:localhost, .*until \d{4}-/),
  });
});

test('a certificate is wrong less than 14 days before its end, after it, and before its beginning', async () => {
  const given = await terms();
  const at = (nowMs: number) => checkCertificate({ ...given, nowMs });
  expect(at(given.endMs - 14 * DAY_MS)).toMatchObject({ ok: true });
  expect(at(given.endMs - 14 * DAY_MS + 1)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('it ends soon'),
    do: expect.stringContaining(`put a new certificate into ${given.files.cert}`),
  });
  for (const [days, text] of [
    [-20.5, '20 days left'],
    [-1.5, '1 day left'],
    [0.5, 'ended less than a day ago'],
    [2, 'ended 2 days ago'],
  ] as const) {
    expect(at(given.endMs + days * DAY_MS)).toMatchObject({ detail: expect.stringContaining(`(${text})`) });
  }
  expect(at(given.endMs + 1)).toMatchObject({ ok: false, detail: expect.stringContaining('it has ended') });
  expect(at(0)).toMatchObject({ ok: false, detail: expect.stringContaining('not valid before') });
});

test('a key of another certificate is wrong, and so is a file that is missing', async () => {
  expect(checkCertificate(await terms({ fits: false }))).toMatchObject({ ok: false });
  const files = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' };
  const given = { ...(await terms()), files };
  expect(checkCertificate(given)).toMatchObject({ ok: false, detail: expect.stringContaining('ENOENT') });
  expect(checkCertificate({ ...given, isGenerated: true })).toMatchObject({ ok: true });
});

test('behind a proxy that ends TLS there is none to look at', async () => {
  const given = { ...(await terms({ fits: false })), isTerminated: true };
  expect(checkCertificate(given)).toMatchObject({ ok: true });
});
