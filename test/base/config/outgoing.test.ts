import { describe, expect, test } from 'vitest';
import { loadConfig, showConfig } from '../../../src/engines/engines.ts';
import { faulty } from '../../support/service/config-faults.ts';

describe('the proxy for webhooks', () => {
  const proxyOf = (url: string) => loadConfig({ FUEL_WEBHOOK_PROXY: url }, 'serve').FUEL_WEBHOOK_PROXY;

  test('has a host and a port, and credentials that are encoded in its URL', () => {
    expect(proxyOf('http://proxy:3128')).toEqual({ host: 'proxy', port: 3128 });
    expect(proxyOf('http://proxy/')).toEqual({ host: 'proxy', port: 80 });
    expect(proxyOf('http://[2001:db8::1]:3128')).toEqual({ host: '2001:db8::1', port: 3128 });
    const authorization = `Basic ${Buffer.from('fuel:p@ss:1').toString('base64')}`;
    expect(proxyOf('http://fuel:p%40ss:1@proxy:3128')).toEqual({ host: 'proxy', port: 3128, authorization });
  });

  test.each(['https://proxy:3128', 'proxy:3128', 'http://proxy:3128/path', 'http://fuel:%zz@proxy:3128'])(
    'cannot be %s',
    (url) => expect(faulty({ FUEL_WEBHOOK_PROXY: url })).toEqual(['FUEL_WEBHOOK_PROXY']),
  );

  test('is shown without what is secret', () => {
    const env = { FUEL_WEBHOOK_PROXY: 'http://fuel:pepper@proxy:3128' };
    expect(JSON.stringify(showConfig(env))).not.toContain('pepper');
  });
});

test('a client certificate needs its key', () => {
  const name = 'FUEL_WEBHOOK_CLIENT_CERT, FUEL_WEBHOOK_CLIENT_KEY';
  expect(faulty({ FUEL_WEBHOOK_CLIENT_CERT: '/client.pem' })).toEqual([name]);
  expect(faulty({ FUEL_WEBHOOK_CLIENT_KEY: '/client-key.pem' })).toEqual([name]);
});

test.each(['-1', '1.1', 'half', '1e-1'])('the part of traces cannot be %s', (ratio) =>
  expect(faulty({ OTEL_TRACES_SAMPLER_ARG: ratio })).toEqual(['OTEL_TRACES_SAMPLER_ARG']),
);

test.each(['0', '1', '0.25', '.5', '1.0'])('the part of traces can be %s', (ratio) =>
  expect(loadConfig({ OTEL_TRACES_SAMPLER_ARG: ratio }, 'serve').OTEL_TRACES_SAMPLER_ARG).toBe(Number(ratio)),
);
