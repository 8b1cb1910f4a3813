import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readCertificate, watchCertificate } from '../../../src/base/config/certificate-files.ts';
import { silentLog } from '../../../src/base/log.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { certificateFiles } from '../../../src/pull/server/certificate.ts';
import { receiverCertificate } from '../../support/deliveries/tls-receiver.ts';
import { memoryLog } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const DAY_MS = 86_400_000;

/** Returns the files of a staging process with this data directory. */
const generatedIn = (dataDir: string) =>
  certificateFiles(loadConfig({ FUEL_DATA_DIR: dataDir }, 'serve'), silentLog);

const certificateOf = (files: { readonly cert: string }) => new X509Certificate(readFileSync(files.cert));

describe('without a certificate of the operator’s', () => {
  test('one is made for this machine’s names, in files that only its user reads', async () => {
    const files = await generatedIn(join(temporaryFolder(), 'data'));
    const certificate = certificateOf(files);
    for (const name of ['localhost', hostname()]) expect(certificate.checkHost(name)).toBe(name);
    for (const address of ['127.0.0.1', '::1']) expect(certificate.checkIP(address)).toBe(address);
    expect(certificate.checkHost('elsewhere.test')).toBeUndefined();
    for (const file of Object.values(files)) expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readCertificate(files).cert).toBe(readFileSync(files.cert, 'utf8'));
  });

  test('it is valid for 825 days, which is as long as clients take one', async () => {
    const validTo = Date.parse(certificateOf(await generatedIn(temporaryFolder())).validTo);
    expect(Math.abs(validTo - Date.now() - 825 * DAY_MS)).toBeLessThan(DAY_MS);
  });

  test('it is kept, and nothing beside it', async () => {
    const folder = temporaryFolder();
    const before = readCertificate(await generatedIn(folder));
    expect(readdirSync(folder).sort()).toEqual(['tls-cert.pem', 'tls-key.pem']);
    expect(readCertificate(await generatedIn(folder))).toEqual(before);
  });

  test('processes that start at once agree on one', async () => {
    const folder = temporaryFolder();
    const made = await Promise.all(Array.from({ length: 5 }, () => generatedIn(folder)));
    const [first, ...others] = made.map((files) => readCertificate(files));
    for (const other of others) expect(other).toEqual(first);
  });

  test.each(['cert', 'key'] as const)('where the %s is lost, both belong together again', async (lost) => {
    const folder = temporaryFolder();
    const files = await generatedIn(folder);
    const before = readFileSync(files.key, 'utf8');
    rmSync(files[lost]);
    const again = readCertificate(await generatedIn(folder));
    expect(again.key === before).toBe(lost === 'cert'); // all processes keep an existing key
    expect(certificateOf(files).checkHost('localhost')).toBe('localhost');
  });
});

test('the operator’s own certificate is used, and none is made', async () => {
  const folder = temporaryFolder();
  const env = { FUEL_DATA_DIR: join(folder, 'data'), FUEL_TLS_CERT: '/c.pem', FUEL_TLS_KEY: '/k.pem' };
  const files = await certificateFiles(loadConfig(env, 'serve'), silentLog);
  expect(files).toEqual({ cert: '/c.pem', key: '/k.pem' });
  expect(() => statSync(join(folder, 'data'))).toThrow('ENOENT');
});

/** Writes a certificate and its key into two files of a folder. */
async function operatorsFiles() {
  const folder = temporaryFolder();
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const write = (pair: { readonly cert?: string; readonly key?: string }): void => {
    if (pair.cert !== undefined) writeFileSync(files.cert, pair.cert);
    if (pair.key !== undefined) writeFileSync(files.key, pair.key);
  };
  const [first, second] = await Promise.all([receiverCertificate(), receiverCertificate()]);
  write(first);
  return { files, write, first, second };
}

test('a pair that does not belong together, or is not there, is refused by the names of its files', async () => {
  const { files, write, second } = await operatorsFiles();
  write({ key: second.key });
  const refused = { code: 'CONFIG_INVALID', message: expect.stringContaining(files.key) };
  expect(() => readCertificate(files)).toThrow(expect.objectContaining(refused));
  const { cert } = await generate([{ name: 'commonName', value: 'localhost' }], { keyType: 'rsa' });
  write({ cert }); // TLS does not compare an RSA certificate with a key of another kind
  expect(() => readCertificate(files)).toThrow(expect.objectContaining(refused));
  rmSync(files.cert);
  expect(() => readCertificate(files)).toThrow(expect.objectContaining(refused));
});

test('a renewed pair is loaded once both files fit, until it is watched no longer', async () => {
  const { files, write, first, second } = await operatorsFiles();
  const lines: Record<string, unknown>[] = [];
  const loaded: string[] = [];
  const watch = watchCertificate({ files, log: memoryLog(lines) }, ({ cert }) => loaded.push(cert));
  onTestFinished(() => watch.stop());
  const isRefused = (): boolean => lines.some(({ level }) => level === 40);
  await until(async () => {
    if (!isRefused()) write({ cert: second.cert }); // the watch may not have checked the files yet
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    return isRefused();
  });
  expect(loaded).toEqual([]);
  write({ key: second.key });
  await until(() => loaded.length > 0);
  expect(loaded.at(-1)).toBe(second.cert);
  watch.stop();
  const before = loaded.length;
  write(first);
  await new Promise((resolve) => setTimeout(resolve, 1_500)); // the files are checked once a second
  expect(loaded).toHaveLength(before);
});
