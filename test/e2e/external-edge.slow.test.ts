import { beforeAll, describe, expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { productionEnv, writeCertificate } from '../support/service/production.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const TOKENS = ['first-token-0123456789', 'second-token-0123456789'] as const;

describe('behind an external edge', () => {
  let service: ServiceProcess;
  let key = '';
  let prefix = '';

  const pull = (headers: Record<string, string>, by: string | undefined = key) =>
    service.get(`/transactions?${SEPTEMBER}`, { key: by, headers });

  beforeAll(async () => {
    const certificate = await writeCertificate(folder());
    service = new ServiceProcess({
      env: { ...productionEnv(certificate), FUEL_EDGE: 'external', FUEL_EDGE_TOKEN: TOKENS.join(',') },
      ca: certificate.pem,
    });
    await service.start();
    ({ key, prefix } = await openAccount(service, { allowList: ['203.0.113.7'], rateLimit: 1 }));
  });

  it('makes the checks 3 to 5 itself', async () => {
    const token = { 'X-Edge-Token': TOKENS[0] };
    expect((await pull(token, `${key}x`)).body.error.code).toBe('INVALID_API_KEY');
    await service.done(['account', 'integration', '7', 'off', '--reason', 'unpaid', '--wait']);
    expect((await pull(token)).body.error.code).toBe('API_INTEGRATION_NOT_ENABLED');
  });

  it('logs a missing proof as an error, counts it, and never writes a token', async () => {
    const { headers } = await pull({ 'X-Edge-Token': 'wrong-token-0123456789' });
    const line = await service.logged(
      (candidate) => candidate.request_id === headers['x-request-id'] && candidate.level === 50,
    );
    expect(line).toBeDefined();
    const { text } = await service.ops('/metrics');
    expect(text).toMatch(/edge_not_enforced\w* [1-9]/);
    for (const token of [...TOKENS, 'wrong-token-0123456789']) expect(service.output).not.toContain(token);
  });

  it('shows the gateway what it needs, and no secret', async () => {
    const { lines, stdout } = await service.done(['key', 'list', '--edge', '--json']);
    expect(lines).toEqual([
      { prefix, environment: 'production', allow_list: ['203.0.113.7'], rate_limit: 1, active: true },
    ]);
    expect(stdout).not.toContain(key.slice(-43));
  });
});
