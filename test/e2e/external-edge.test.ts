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

  it.each(TOKENS)('accepts the token %s, and leaves address and rate to the gateway', async (token) => {
    for (let index = 0; index < 3; index++) {
      expect((await pull({ 'X-Edge-Token': token })).status).toBe(200);
    }
  });

  it.each<[string, Record<string, string>]>([
    ['no token', {}],
    ['a wrong token', { 'X-Edge-Token': 'third-token-0123456789' }],
    ['an empty token', { 'X-Edge-Token': '' }],
    ['both tokens at once', { 'X-Edge-Token': TOKENS.join(',') }],
  ])('is EDGE_NOT_ENFORCED to %s, before every other check', async (_name, headers) => {
    for (const answer of [
      await pull(headers),
      await pull(headers, 'no key'),
      await service.get('//nowhere', { headers }),
    ]) {
      expect([answer.status, answer.body]).toEqual([
        403,
        {
          error: {
            code: 'EDGE_NOT_ENFORCED',
            message: expect.any(String),
            request_id: answer.headers['x-request-id'],
          },
        },
      ]);
    }
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

  it('needs a token to start', async () => {
    const { code, stderr } = await service.fuel(['serve'], { env: { FUEL_EDGE_TOKEN: '' } });
    expect([code, stderr]).toEqual([1, expect.stringContaining('FUEL_EDGE_TOKEN')]);
  });
});
