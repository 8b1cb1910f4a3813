import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { productionEnv, writeCertificate } from '../support/service/production.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { confirmed, importEvents, openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

it('in production everything is as it is configured, and the allow-list applies once --wait returns', async () => {
  const certificate = await writeCertificate(folder());
  const env = { ...productionEnv(certificate), FUEL_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' };
  const service = await new ServiceProcess({ env, ca: certificate.pem }).start();
  const { key, prefix } = await openAccount(service, { allowList: ['203.0.113.0/24'] });
  await importEvents(service, [confirmed(501)]);
  expect(key).toMatch(/^svc_live_[a-z0-9]{10}_[A-Za-z0-9]{43}$/);
  for (const name of ['tls-cert.pem', 'tls-key.pem', 'master.key'])
    expect(existsSync(join(service.dataDir, name))).toBe(false);

  const from = (address: string) =>
    service.get(`/transactions?${SEPTEMBER}`, { key, headers: { 'X-Forwarded-For': address } });
  const { body } = await from('203.0.113.9');
  expect(body.data[0].images.pump).toMatch(
    /^https:\/\/s3\.example\.net:9000\/pictures\/photos\/501\/pump\.jpg\?/,
  );
  await service.done(['key', 'allow', prefix, '192.0.2.0/31', '--wait']);
  expect((await from('192.0.2.1')).status).toBe(200);
  expect((await from('203.0.113.9')).body.error.code).toBe('IP_NOT_ALLOWED');
});
