import { beforeAll, describe, expect, it } from 'vitest';
import { exchange } from '../support/service/raw-connection.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

describe('behind a proxy that ends TLS', () => {
  const service = new ServiceProcess({
    env: { FUEL_TLS: 'terminated', FUEL_TRUSTED_PROXIES: '127.0.0.0/8' },
  });
  let key = '';

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
  });

  it('serves what the proxy says came by HTTPS', async () => {
    expect(service.url).toMatch(/^http:/);
    const { status } = await service.get(`/transactions?${SEPTEMBER}`, {
      key,
      headers: { 'X-Forwarded-Proto': 'https' },
    });
    expect(status).toBe(200);
  });

  it('disconnects an address that is not a trusted proxy', async () => {
    const strict = new ServiceProcess({
      env: { FUEL_TLS: 'terminated', FUEL_TRUSTED_PROXIES: '203.0.113.0/24' },
    });
    await strict.start();
    expect(await exchange(strict.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-Proto: https\r\n\r\n')).toBe(
      '',
    );
    const { turned_away } = await strict.logged(({ msg }) => msg === 'connections were turned away');
    expect(turned_away).toEqual({ not_a_proxy: 1 });
    const { text } = await strict.ops('/metrics');
    expect(text).toContain('fuel_connections_turned_away_total{reason="not_a_proxy"} 1');
  });
});
