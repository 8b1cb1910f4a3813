import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ENCODE_CREDENTIALS } from '../../../src/base/errors.ts';
import { DAY_MS } from '../../../src/domain/values/date-time.ts';
import { loadConfig, registry } from '../../../src/engines/engines.ts';
import {
  checkCertificate,
  checkClientCertificate,
  checkConfiguration,
  faultsOfNamed,
} from '../../../src/operator/checks/configuration.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { said } from '../../support/checks/facts.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const check = (env: Readonly<Record<string, string>>) =>
  said(checkConfiguration({ env, config: registry.inspectConfig(env).config, registry }));

test('every fault is named, and so is a name that resembles a setting', async () => {
  expect(await check({ FUEL_OWN: '1' })).toMatchObject({ ok: true });
  const misspelt = { FUEL_LISTN: '0.0.0.0:1' };
  expect(await check({ FUEL_TLS: 'no', FUEL_EDGE: 'no', ...misspelt })).toEqual({
    ok: false,
    detail: expect.stringMatching(
      /FUEL_TLS: .*FUEL_EDGE: .*; FUEL_LISTN is not a setting: did you mean FUEL_LISTEN\?$/,
    ),
    do: expect.stringContaining('fuel config show'),
  });
  expect(await check(misspelt)).toMatchObject({ ok: false });
});

const faultsOf = (env: Readonly<Record<string, string>>) =>
  faultsOfNamed(loadConfig({ FUEL_DATA_DIR: temporaryFolder(), ...env }, 'command'));

describe('a connection string', () => {
  test.each([
    ['MONGODB_URL', 'mongodb://ada:pepper@host/?retryWrite=true', 'option retrywrite is not supported'],
    ['MONGODB_URL', 'mongodb://host:99999/', 'Unable to parse host:99999 with URL'],
    ['MONGODB_URL', 'mongodb://ada:pep@per@host/', `Invalid connection string: ${ENCODE_CREDENTIALS}`],
    ['MONGODB_URL', 'mongodb://ada:pepper@', expect.any(String)],
    [
      'EVENTSTORE_URL',
      'esdb://ada:pepper@host?tsl=true',
      expect.stringMatching(/^option tsl is not supported: there are c/),
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tls=perhaps',
      'Unexpected "perhaps" at position 16, expected true or false',
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tlsVerifyCert=false',
      expect.stringContaining('name the authority with tlsCAFile'),
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tlsCAFile=/nowhere',
      'Failed to load certificate file. File was not found',
    ],
    ['EVENTSTORE_URL', 'esdb://ada:pepper:2@host:7:8', expect.any(String)],
    ['EVENTSTORE_URL', 'esdb://ada:pep%per@host', expect.any(String)],
  ])(
    'that the driver rejects is a fault of the setting, which does not show the password: %s=%s',
    async (name, url, why) => {
      const [fault, ...others] = await faultsOf({ [name]: url });
      expect(others).toEqual([]);
      const [setting, ...said] = (fault ?? '').split(': ');
      expect([setting, said.join(': ')]).toEqual([name, why]);
      expect(fault).not.toMatch(/pep/);
    },
  );

  test.each([
    ['MONGODB_URL', 'mongodb://ada:pepper@a,b:27018/?replicaSet=rs0&tls=true'],
    [
      'EVENTSTORE_URL',
      'esdb+discover://ada:pepper@a,b:2114?tls=false&tlsVerifyCert=false&Keep-Alive_timeout=900',
    ],
  ])('that the driver takes is none, and nobody is asked: %s=%s', async (name, url) => {
    expect(await faultsOf({ [name]: url })).toEqual([]);
  });

  test('that is wrong is reported by config show, and stops each command that needs it with one line', async () => {
    const { fuel } = commandLine({ MONGODB_URL: 'mongodb://ada:pepper@host/?foo=1' }, { hasStore: true });
    const shown = await fuel('config', 'show', '--json');
    expect([shown.code, shown.json.faults]).toEqual([1, ['MONGODB_URL: option foo is not supported']]);
    const { code, stderr } = await fuel('delivery', 'list');
    expect([code, stderr]).toEqual([1, 'fuel: MONGODB_URL: option foo is not supported\n']);
  });

  test('is never printed by a driver', async () => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue(undefined);
    onTestFinished(() => warned.mockRestore());
    await faultsOf({ EVENTSTORE_URL: 'esdb://ada:pepper@host?tls=false&tlsVerifyCert=false' });
    await faultsOf({ EVENTSTORE_URL: 'esdb://ada:pepper@host?tls=false&unknown=1' });
    expect(warned).not.toHaveBeenCalled();
  });
});

type Config = Parameters<typeof checkCertificate>[0]['config'];

const checkOf = (config: Config, nowMs = Date.now()) =>
  said(checkCertificate({ config, clock: { now: () => nowMs }, process: undefined }));

async function terms({ fits = true } = {}) {
  const folder = temporaryFolder();
  const files = { cert: join(folder, 'tls-cert.pem'), key: join(folder, 'tls-key.pem') };
  const [made, other] = [await makeCertificate(), fits ? undefined : await makeCertificate()];
  writeFileSync(files.cert, made.cert);
  writeFileSync(files.key, (other ?? made).key);
  const { validToDate } = new X509Certificate(made.cert);
  const config = {
    FUEL_TLS: 'served' as const,
    FUEL_DATA_DIR: folder,
    FUEL_TLS_CERT: files.cert,
    FUEL_TLS_KEY: files.key,
  };
  return { config, endMs: validToDate.getTime() };
}

test('a certificate that lasts is right, with its names and its end', async () => {
  const finding = await checkOf((await terms()).config);
  expect(finding).toMatchObject({
    ok: true,
    detail: expect.stringMatching(/for DNS:localhost, .*until \d{4}-/),
  });
});

test('a certificate is wrong less than 14 days before its end, after it, and before its beginning', async () => {
  const given = await terms();
  const at = (nowMs: number) => checkOf(given.config, nowMs);
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

test('the certificate for receivers is judged by its end, and needs no name of a host', async () => {
  const { config, endMs } = await terms();
  const { FUEL_TLS_CERT: cert, FUEL_TLS_KEY: key } = config;
  const shown = { FUEL_WEBHOOK_CLIENT_CERT: cert, FUEL_WEBHOOK_CLIENT_KEY: key };
  const found = (nowMs: number, settings = shown) =>
    said(checkClientCertificate({ config: loadConfig(settings, 'command'), clock: { now: () => nowMs } }));
  expect(await found(endMs - 14 * DAY_MS)).toMatchObject({ ok: true });
  expect(await found(endMs - DAY_MS)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('expires soon'),
    do: expect.stringContaining(`put a new certificate into ${cert}`),
  });
  writeFileSync(cert, (await generate([{ name: 'commonName', value: 'the service' }])).cert);
  const detail = expect.stringContaining('FUEL_WEBHOOK_CLIENT_CERT, FUEL_WEBHOOK_CLIENT_KEY');
  expect(await found(endMs)).toMatchObject({ ok: false, detail }); // the key of another one
  const named = await generate([{ name: 'commonName', value: 'the service' }], {
    extensions: [{ name: 'basicConstraints', cA: false }],
  });
  writeFileSync(cert, named.cert);
  writeFileSync(key, named.private);
  expect(await found(Date.now())).toMatchObject({ detail: expect.stringContaining('for CN=the service') });
});

test('a key of another certificate is wrong, and so is a file that is missing', async () => {
  const { config } = await terms({ fits: false });
  expect(await checkOf(config)).toMatchObject({ ok: false });
  const missing = { ...config, FUEL_TLS_CERT: '/nowhere/cert.pem', FUEL_TLS_KEY: '/nowhere/key.pem' };
  expect(await checkOf(missing)).toMatchObject({ ok: false, detail: expect.stringContaining('ENOENT') });
  const generated = { ...config, FUEL_TLS_CERT: undefined, FUEL_TLS_KEY: undefined };
  expect(await checkOf(generated)).toMatchObject({
    ok: false,
    do: expect.stringMatching(/^rm .*tls-cert.pem/),
  });
  expect(await checkOf({ ...generated, FUEL_DATA_DIR: temporaryFolder() })).toMatchObject({ ok: true });
});

test('behind a proxy that ends TLS there is no certificate to check', async () => {
  const { config } = await terms({ fits: false });
  expect(await checkOf({ ...config, FUEL_TLS: 'terminated' })).toMatchObject({ ok: true });
});
