import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { withEngines } from '../support/engines/test-engines.ts';
import type { Answer } from '../support/fetch-answer.ts';
import { type Env, folder, fuel } from '../support/service/commands.ts';
import { Operator } from '../support/service/operator.ts';
import { type CertificateFiles, productionEnv, writeCertificate } from '../support/service/production.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { confirmed, importEvents, openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const ALLOWED = ['203.0.113.0/24', '2001:db8::/32', '198.51.100.7'];

describe('access in production', () => {
  const files = folder();
  let certificate: CertificateFiles;
  let env: Env;
  let service: ServiceProcess;
  let key = '';
  let prefix = '';

  const from = (address: string | undefined, by: string | undefined = key): Promise<Answer> =>
    service.get(`/transactions?${SEPTEMBER}`, {
      key: by,
      headers: address === undefined ? {} : { 'X-Forwarded-For': address },
    });
  const codeFrom = async (address: string | undefined, by?: string) => {
    const { status, body } = await from(address, by);
    return `${status} ${body.error?.code ?? ''}`.trim();
  };

  beforeAll(async () => {
    certificate = await writeCertificate(files);
    env = { ...productionEnv(certificate), FUEL_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' };
    service = await new ServiceProcess({ env, ca: certificate.pem }).start();
    ({ key, prefix } = await openAccount(service, { allowList: ALLOWED }));
    await importEvents(service, [confirmed(501)]);
  });

  it('uses the given certificate and keys, and generates none', () => {
    expect(key).toMatch(/^svc_live_[a-z0-9]{10}_[A-Za-z0-9]{43}$/);
    for (const name of ['tls-cert.pem', 'tls-key.pem', 'master.key']) {
      expect(existsSync(join(service.dataDir, name))).toBe(false);
    }
  });

  it('judges the address before the limit, the limit before the key, the key before the account', async () => {
    await service.done(['account', 'open', '9', '--name', 'Nine']);
    const issued = await service.done([
      ...['key', 'issue', '9', '--json', '--wait', '--allow', '203.0.113.9', '--rate-limit', '1'],
    ]);
    const nine: string = issued.json.key;
    expect(await codeFrom('192.0.2.1', nine)).toBe('403 IP_NOT_ALLOWED');
    expect(await codeFrom('203.0.113.9', nine)).toBe('403 API_INTEGRATION_NOT_ENABLED');
    expect(await codeFrom('203.0.113.9', nine)).toBe('429 RATE_LIMITED');
    expect(await codeFrom('192.0.2.1', nine)).toBe('403 IP_NOT_ALLOWED');
    expect(await codeFrom('192.0.2.1', `${nine.slice(0, -43)}${'a'.repeat(43)}`)).toBe('403 IP_NOT_ALLOWED');
    await service.done(['key', 'off', issued.json.prefix, '--reason', 'leaked', '--wait']);
    expect(await codeFrom('192.0.2.1', nine)).toBe('403 IP_NOT_ALLOWED');
    expect(await codeFrom('192.0.2.1', `svc_live_zzzzzzzzzz_${'a'.repeat(43)}`)).toBe('401 INVALID_API_KEY');
    const nowhere = await service.get('//nowhere', {
      key: nine,
      headers: { 'X-Forwarded-For': '192.0.2.1' },
    });
    expect(nowhere.body.error.code).toBe('IP_NOT_ALLOWED');
  });

  it('follows the allow-list as soon as --wait returns', async () => {
    await service.done(['key', 'allow', prefix, '192.0.2.0/31', '--wait']);
    expect(await codeFrom('192.0.2.1')).toBe('200');
    expect(await codeFrom('203.0.113.0')).toBe('403 IP_NOT_ALLOWED');
    await service.done(['key', 'allow', prefix, ALLOWED.join(','), '--wait']);
  });

  it('never issues or leaves a key without an allow-list', async () => {
    for (const args of [
      ['key', 'issue', '7'],
      ['key', 'issue', '7', '--allow', ''],
      ['key', 'allow', prefix, ''],
      ['key', 'allow', prefix, ','],
    ]) {
      const { code, stdout } = await service.fuel(args);
      expect([args, code === 1 || code === 2, stdout]).toEqual([args, true, '']);
    }
    expect(await codeFrom('203.0.113.9')).toBe('200');
  });

  it('does not know keys of staging', async () => {
    // No command would issue such a key in this store.
    const staging = new Operator(withEngines(service.dataDir, { FUEL_DATA_DIR: service.dataDir }));
    const { key } = await staging.provision(7, []);
    expect(key).toMatch(/^svc_test_/);
    expect(await codeFrom('203.0.113.9', key)).toBe('401 INVALID_API_KEY');
    expect(await codeFrom('203.0.113.9', key.replace('_test_', '_live_'))).toBe('401 INVALID_API_KEY');
  });

  it('presigns with the configured store', async () => {
    const { body } = await from('203.0.113.9');
    const url = new URL(body.data[0].images.pump);
    expect(url.origin + url.pathname).toBe('https://s3.example.net:9000/pictures/photos/501/pump.jpg');
    expect(url.searchParams.get('X-Amz-Credential')).toMatch(
      /^AKIATEST\/\d{8}\/eu-central-1\/s3\/aws4_request$/,
    );
  });

  it('refuses to start without what production needs, naming all of it at once', async () => {
    const { code, stdout, stderr } = await fuel(['serve'], {
      dataDir: folder(),
      env: { FUEL_ENVIRONMENT: 'production', FUEL_WEBHOOK_ALLOW_PRIVATE: 'true' },
    });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    for (const name of [...Object.keys(productionEnv(certificate)), 'FUEL_WEBHOOK_ALLOW_PRIVATE']) {
      if (name !== 'FUEL_ENVIRONMENT') expect(stderr).toContain(name);
    }
  });

  it('reloads a renewed certificate without a restart', async () => {
    const renewing = folder();
    const old = await writeCertificate(renewing);
    const renewed = new ServiceProcess({ env: productionEnv(old), ca: old.pem });
    await renewed.start();
    const next = await writeCertificate(renewing);
    const trusting = new ServiceProcess({ ca: next.pem });
    trusting.url = renewed.url;
    await until(() =>
      trusting.get('/transactions').then(
        ({ status }) => status === 401,
        () => false,
      ),
    );
    expect(renewed.logLines.filter(({ msg }) => msg === 'listening')).toHaveLength(1);
  });
});
