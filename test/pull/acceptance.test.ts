import { describe, expect, test } from 'vitest';
import {
  ACCOUNT,
  accountEvents,
  KEY,
  LIVE_KEY,
  PREFIX,
  RANGE,
  SECRET,
  startTestApi,
} from '../support/service/api.ts';

const account = { account_id: ACCOUNT };
const key = { ...account, prefix: PREFIX };
const UNKNOWN = `svc_test_zzzzzzzzzz_${SECRET}`;
const GUESS = `svc_test_${PREFIX}_${'g'.repeat(43)}`;

describe('the acceptance of a request', () => {
  test('an accepted one gets the list, with the headers of every answer', async () => {
    const api = await startTestApi();
    const answer = await api.get(RANGE);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.text)));
  });

  test.each([
    ['missing', null],
    ['unknown', UNKNOWN],
    ['of the wrong secret', GUESS],
    ['of the other environment', LIVE_KEY],
    ['not of the form', 'hello'],
    ['given twice', `${KEY}, ${KEY}`],
  ])('check 3: a key that is %s is INVALID_API_KEY', async (_, presented) => {
    const api = await startTestApi();
    const answer = await api.get(RANGE, { key: presented });
    expect(answer.status).toBe(401);
    expect(answer.body.error.code).toBe('INVALID_API_KEY');
    expect(answer.body.error.request_id).toBe(answer.headers['x-request-id']);
    expect(answer.body.error.message).toBeTypeOf('string');
    expect(answer.body.error).not.toHaveProperty('fields');
  });

  test('check 3: a switched-off key is INVALID_API_KEY until it is switched on again', async () => {
    const api = await startTestApi();
    api.apply({ type: 'KeySwitchedOff', data: key });
    expect((await api.get(RANGE)).body.error.code).toBe('INVALID_API_KEY');
    api.apply({ type: 'KeySwitchedOn', data: key });
    expect((await api.get(RANGE)).status).toBe(200);
  });

  test('check 4 comes before check 5', async () => {
    const api = await startTestApi({
      events: accountEvents().filter(
        ({ type }) => type !== 'IntegrationEnabled' && type !== 'ChargingProfileSet',
      ),
    });
    expect((await api.get(RANGE)).body.error.code).toBe('API_INTEGRATION_NOT_ENABLED');
    api.apply({ type: 'IntegrationEnabled', data: account });
    const answer = await api.get(RANGE);
    expect(answer.status).toBe(403);
    expect(answer.body.error.code).toBe('NO_ACTIVE_CHARGING_PROFILE');
  });

  test('check 5: access ends at the very moment the charging profile does', async () => {
    const api = await startTestApi();
    const end = Date.parse('2026-11-01T00:00:00Z');
    api.at(end - 1);
    expect((await api.get(RANGE)).headers['x-access-expires-at']).toBe('2026-11-01T00:00:00.000Z');
    api.at(end);
    const answer = await api.get(RANGE);
    expect(answer.body.error.code).toBe('NO_ACTIVE_CHARGING_PROFILE');
    expect(answer.headers).not.toHaveProperty('x-access-expires-at');
  });

  test('X-Access-Expires-At is absent when a current profile is open-ended', async () => {
    const api = await startTestApi();
    api.apply({
      type: 'ChargingProfileSet',
      data: { ...account, profile: 'open', from: '2026-09-01T00:00:00Z', to: null },
    });
    expect((await api.get(RANGE)).headers).not.toHaveProperty('x-access-expires-at');
  });

  test('access is judged before the parameters', async () => {
    const api = await startTestApi();
    expect((await api.get('nonsense=1', { key: null })).status).toBe(401);
  });

  test('an account that can’t be read is answered 503, and says when to come again', async () => {
    const api = await startTestApi();
    api.spoil();
    const answer = await api.get(RANGE);
    expect(answer.status).toBe(503);
    expect(answer.body.error.code).toBe('SERVICE_UNAVAILABLE');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('everything is answered 503 while the rows of accounts are not ready, unknown paths too', async () => {
    let state: 'ready' | 'unavailable' = 'unavailable';
    const api = await startTestApi({ availability: () => state });
    for (const path of [RANGE, '/nowhere']) expect((await api.get(path, { key: null })).status).toBe(503);
    state = 'ready';
    expect((await api.get(RANGE)).status).toBe(200);
  });
});

describe('the log', () => {
  test('has one line for a request that names the key by its prefix, and never the secret or the query', async () => {
    const api = await startTestApi();
    const answer = await api.get(`${RANGE}&limit=7`);
    const lines = api.logLines.filter(({ request_id }) => request_id === answer.headers['x-request-id']);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      method: 'GET',
      path: '/api/v1/integration/transactions',
      status: 200,
      key_prefix: PREFIX,
      rows: 0,
    });
    expect(JSON.stringify(api.logLines)).not.toContain(SECRET);
    expect(JSON.stringify(api.logLines)).not.toContain('2026-09-01');
  });

  test('names a refusal of the edge by an id that its client does not get', async () => {
    const api = await startTestApi({ environment: 'production' });
    api.apply({ type: 'KeyAllowListSet', data: { ...key, allow_list: ['198.51.100.1'] } });
    await api.get(RANGE, { key: LIVE_KEY });
    expect(api.logLines.at(-1)).toMatchObject({ code: 'IP_NOT_ALLOWED', key_prefix: PREFIX });
    expect(JSON.stringify(api.logLines)).not.toContain('127.0.0.1');
  });
});
