import { describe, expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { createMetrics } from '../../src/service/ops/metrics.ts';
import {
  ACCOUNT,
  KEY,
  LIVE_KEY,
  PREFIX,
  RANGE,
  SECRET,
  startTestApi,
  testCertificate,
} from '../support/service/api.ts';
import { exchange } from '../support/service/raw-connection.ts';

const account = { account_id: ACCOUNT };
const key = { ...account, prefix: PREFIX };
const GUESS = `svc_test_${PREFIX}_${'g'.repeat(43)}`;

describe('the embedded edge', () => {
  const production = { environment: 'production', proxies: ['127.0.0.1'] } as const;
  const from = (address: string) => ({ key: LIVE_KEY, headers: { 'x-forwarded-for': address } });

  test('check 1: an address that is not on the list is IP_NOT_ALLOWED, with nothing but the code', async () => {
    const api = await startTestApi(production);
    const answer = await api.get(RANGE, from('198.51.100.1'));
    expect(answer.status).toBe(403);
    expect(answer.text).toBe('{"error":{"code":"IP_NOT_ALLOWED"}}');
    expect(answer.headers).not.toHaveProperty('x-request-id');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('check 1: an address with a port is the address, and one that cannot be read is named in one warning a second', async () => {
    const api = await startTestApi(production);
    expect((await api.get(RANGE, from('203.0.113.77:51234, 127.0.0.1:443'))).status).toBe(200);
    const warnings = () => api.logLines.filter(({ level }) => level === 40);
    expect(warnings()).toEqual([]);
    const text = `hidden-${'x'.repeat(200)}`;
    for (let count = 0; count < 3; count++)
      expect((await api.get(RANGE, from(`203.0.113.77, ${text}`))).status).toBe(403);
    expect(warnings()).toMatchObject([{ forwarded_for: text.slice(0, 100), proxy: '127.0.0.1' }]);
  });

  test('check 1: a new allow-list applies at once', async () => {
    const api = await startTestApi(production);
    expect((await api.get(RANGE, from('198.51.100.1'))).status).toBe(403);
    api.apply({ type: 'KeyAllowListSet', data: { ...key, allow_list: ['198.51.100.1'] } });
    expect((await api.get(RANGE, from('198.51.100.1'))).status).toBe(200);
    expect((await api.get(RANGE, from('203.0.113.77'))).status).toBe(403);
  });

  test('check 1 goes by the prefix alone, so it comes before a wrong secret and a switched-off key', async () => {
    const api = await startTestApi(production);
    api.apply({ type: 'KeySwitchedOff', data: key });
    for (const presented of [LIVE_KEY, `svc_live_${PREFIX}_wrong`]) {
      const answer = await api.get(RANGE, { ...from('198.51.100.1'), key: presented });
      expect(answer.body.error.code).toBe('IP_NOT_ALLOWED');
    }
  });

  test('check 1: X-Forwarded-For of a peer that is not trusted changes nothing', async () => {
    const api = await startTestApi({ environment: 'production' });
    expect((await api.get(RANGE, from('198.51.100.1'))).status).toBe(200);
  });

  test('check 2: request 61 in a window is RATE_LIMITED, with Retry-After and nothing but the code', async () => {
    const api = await startTestApi();
    const answers = await Promise.all(Array.from({ length: 61 }, () => api.get(RANGE)));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(1);
    expect(refused[0]?.status).toBe(429);
    expect(refused[0]?.text).toBe('{"error":{"code":"RATE_LIMITED"}}');
    expect(refused[0]?.headers['retry-after']).toMatch(/^([1-9]|[1-5][0-9]|60)$/);
    expect(refused[0]?.headers).not.toHaveProperty('x-request-id');
  });

  test('check 2: the key’s own limit counts, and another one applies at once', async () => {
    const api = await startTestApi();
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 1 } });
    expect((await api.get(RANGE)).status).toBe(200);
    expect((await api.get(RANGE)).status).toBe(429);
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 2 } });
    expect((await api.get(RANGE)).status).toBe(200);
    expect((await api.get(RANGE)).status).toBe(429);
  });

  test('check 2: what the API refuses counts too, unknown paths and switched-off keys among it', async () => {
    const api = await startTestApi();
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 4 } });
    expect((await api.get('/nowhere')).status).toBe(404);
    expect((await api.get(RANGE, { method: 'POST' })).status).toBe(405);
    expect((await api.get('limit=0')).status).toBe(400);
    api.apply({ type: 'KeySwitchedOff', data: key });
    expect((await api.get(RANGE)).status).toBe(401);
    expect((await api.get(RANGE)).status).toBe(429);
  });

  test('check 2: a caller that knows only the prefix can’t use up the real key’s window', async () => {
    const api = await startTestApi();
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 2 } });
    const guesses = [];
    for (let count = 0; count < 4; count++) guesses.push((await api.get(RANGE, { key: GUESS })).status);
    expect(guesses).toEqual([401, 401, 429, 429]);
    expect((await api.get(RANGE)).status).toBe(200);
  });

  test('checks 1 and 2 are answered also while the transactions view can’t be reached', async () => {
    const view = { page: () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'the view')) };
    const api = await startTestApi({ ...production, view });
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 1 } });
    const codes = [];
    for (const address of ['198.51.100.1', '203.0.113.1', '203.0.113.1']) {
      codes.push((await api.get(RANGE, from(address))).body.error.code);
    }
    expect(codes).toEqual(['IP_NOT_ALLOWED', 'SERVICE_UNAVAILABLE', 'RATE_LIMITED']);
  });

  test('neither check is made of a request that did not come over HTTPS', async () => {
    const api = await startTestApi({ ...production, tlsTerminated: true });
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 1 } });
    for (const address of ['198.51.100.1', '203.0.113.1', '203.0.113.1']) {
      expect((await api.get(RANGE, from(address))).body.error.code).toBe('HTTPS_REQUIRED');
    }
  });
});

const external = { edge: { kind: 'external', tokens: ['first', 'second'] } } as const;

test.each([
  ['embedded', {}],
  ['external', external],
] as const)(
  'with the %s edge no log line of a refusal has a key or a token that was presented',
  async (_, edge) => {
    const api = await startTestApi(edge);
    api.apply({ type: 'IntegrationDisabled', data: account });
    for (const [token, presented] of [
      ['guessed-token', KEY],
      ['first', KEY],
      ['first', GUESS],
      ['first', `${PREFIX} without the form of a key`],
    ] as const) {
      const headers = { 'x-edge-token': token };
      for (const path of [RANGE, '/nowhere'])
        expect((await api.get(path, { key: presented, headers })).status).toBeGreaterThanOrEqual(400);
    }
    const unparsed = `GET / HTTP/9.9\r\nX-Edge-Token: guessed-token\r\nX-API-Key: ${KEY}\r\n\r\n`;
    await exchange(api.address.port, unparsed, { ca: (await testCertificate()).cert });
    expect(api.logLines.length).toBeGreaterThanOrEqual(9);
    const lines = JSON.stringify(api.logLines);
    for (const secret of ['guessed-token', SECRET, GUESS, 'without the form'])
      for (const form of [secret, String([...Buffer.from(secret)])]) expect(lines).not.toContain(form);
  },
);

describe('the external edge', () => {
  test('a request without its proof is EDGE_NOT_ENFORCED, before every check, with its id', async () => {
    const api = await startTestApi(external);
    for (const headers of [{}, { 'x-edge-token': 'wrong' }, { 'x-edge-token': '' }]) {
      const answer = await api.get('/nowhere', { key: null, headers });
      expect(answer.status).toBe(403);
      expect(answer.body.error.code).toBe('EDGE_NOT_ENFORCED');
      expect(answer.body.error.request_id).toBe(answer.headers['x-request-id']);
    }
  });

  test('a missing token is refused even while the service is unavailable, and before HTTPS is required', async () => {
    const unavailable = await startTestApi({ ...external, availability: () => 'unavailable' });
    expect((await unavailable.get(RANGE)).body.error.code).toBe('EDGE_NOT_ENFORCED');
    const proven = await unavailable.get(RANGE, { headers: { 'x-edge-token': 'first' } });
    expect(proven.body.error.code).toBe('SERVICE_UNAVAILABLE');

    const proxies = ['127.0.0.0/8'];
    const plain = await startTestApi({ ...external, proxies, tlsTerminated: true });
    expect((await plain.get(RANGE)).body.error.code).toBe('EDGE_NOT_ENFORCED');
  });

  test('a missing proof is logged as an error and counted', async () => {
    const metrics = createMetrics();
    const api = await startTestApi({ ...external, metrics });
    await api.get(RANGE);
    expect(api.logLines.filter(({ level }) => level === 50)).toHaveLength(1);
    expect((await metrics.edgeNotEnforced.get()).values[0]?.value).toBe(1);
  });

  test('the gateway’s checks are not made again', async () => {
    const api = await startTestApi({ ...external, environment: 'production' });
    api.apply({ type: 'KeyAllowListSet', data: { ...key, allow_list: ['198.51.100.1'] } });
    api.apply({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 1 } });
    const proven = { key: LIVE_KEY, headers: { 'x-edge-token': 'first' } };
    for (let count = 0; count < 2; count++) expect((await api.get(RANGE, proven)).status).toBe(200);
  });

  test('an account that can’t be read is reported only to a caller with its key', async () => {
    const api = await startTestApi(external);
    api.spoil();
    const headers = { 'x-edge-token': 'first' };
    expect((await api.get(RANGE, { headers })).status).toBe(503);
    expect((await api.get(RANGE, { headers, key: GUESS })).status).toBe(401);
  });
});
