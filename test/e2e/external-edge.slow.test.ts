import { expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { productionEnv, writeCertificate } from '../support/service/production.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const TOKENS = ['first-token-0123456789', 'second-token-0123456789'] as const;
const WRONG = 'wrong-token-0123456789';

it('behind an external edge a missing proof is refused, logged as an error and counted, and no token is written', async () => {
  const certificate = await writeCertificate(folder());
  const service = new ServiceProcess({
    env: { ...productionEnv(certificate), FUEL_EDGE: 'external', FUEL_EDGE_TOKEN: TOKENS.join(',') },
    ca: certificate.pem,
  });
  await service.start();
  const { key } = await openAccount(service, { allowList: ['203.0.113.7'], rateLimit: 1 });
  const pull = (token: string) =>
    service.get(`/transactions?${SEPTEMBER}`, { key, headers: { 'X-Edge-Token': token } });
  for (const token of TOKENS) expect((await pull(token)).status).toBe(200);
  const { status, headers } = await pull(WRONG);
  expect(status).not.toBe(200);
  await service.logged((line) => line.request_id === headers['x-request-id'] && line.level === 50);
  expect((await service.ops('/metrics')).text).toMatch(/edge_not_enforced\w* [1-9]/);
  for (const token of [...TOKENS, WRONG]) expect(service.output).not.toContain(token);
});
