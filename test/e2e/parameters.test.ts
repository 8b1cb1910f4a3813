import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount } from '../support/transactions/e2e-samples.ts';

const FROM = 'from=2026-09-01T00:00:00Z';
const TO = 'to=2026-09-30T00:00:00Z';

describe('the parameters of the transactions endpoint', () => {
  const service = new ServiceProcess();
  let key = '';

  const pull = (query: string) => service.get(`/transactions${query}`, { key });

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service, { structure: true }));
  });

  it.each([
    ['', ['from', 'to']],
    [`?${FROM}`, ['to']],
    [`?${TO}`, ['from']],
    [`?from=&to=`, ['from', 'to']],
    [`?from=2026-09-01&${TO}`, ['from']],
    [`?from=2026-09-01T00:00:00&${TO}`, ['from']],
    [`?from=2026-09-01T00:00Z&${TO}`, ['from']],
    [`?from=2026-09-01%2000:00:00Z&${TO}`, ['from']],
    [`?from=yesterday&to=1756684800`, ['from', 'to']],
    [`?from=2026-02-30T00:00:00Z&to=2026-03-01T00:00:00Z`, ['from']],
    [`?from=2026-09-01T25:00:00Z&${TO}`, ['from']],
    [`?${FROM}&to=2026-09-31T00:00:00Z`, ['to']],
    [`?${FROM}&to=2026-08-31T23:59:59.999Z`, ['to']],
    [`?${FROM}&to=2026-10-02T00:00:00.001Z`, ['to']],
    [`?${FROM}&${TO}&limit=0`, ['limit']],
    [`?${FROM}&${TO}&limit=101`, ['limit']],
    [`?${FROM}&${TO}&limit=-1`, ['limit']],
    [`?${FROM}&${TO}&limit=ten`, ['limit']],
    [`?${FROM}&${TO}&limit=1.5`, ['limit']],
    [`?${FROM}&${TO}&limit=1e1`, ['limit']],
    [`?${FROM}&${TO}&limit=`, ['limit']],
    [`?${FROM}&${TO}&status=`, ['status']],
    [`?${FROM}&${TO}&status=VOID`, ['status']],
    [`?${FROM}&${TO}&status=confirmed`, ['status']],
    [`?${FROM}&${TO}&status=CONFIRMED,PENDING`, ['status']],
    [`?${FROM}&${TO}&status=CONFIRMED,`, ['status']],
    [`?${FROM}&${TO}&corporate_id=`, ['corporate_id']],
    [`?${FROM}&${TO}&corporate_id=31,`, ['corporate_id']],
    [`?${FROM}&${TO}&corporate_id=31,%2032`, ['corporate_id']],
    [`?${FROM}&${TO}&corporate_id=-31`, ['corporate_id']],
    [`?${FROM}&${TO}&corporate_id=9007199254740992`, ['corporate_id']],
    [`?${FROM}&${TO}&corporate_group_id=`, ['corporate_group_id']],
    [`?${FROM}&${TO}&corporate_group_id=three`, ['corporate_group_id']],
    [`?${FROM}&${TO}&corporate_group_id=3,4`, ['corporate_group_id']],
    [`?${FROM}&${TO}&corporate_group_id=9007199254740992`, ['corporate_group_id']],
    [`?${FROM}&${TO}&cursor=`, ['cursor']],
    [`?${FROM}&${TO}&cursor=abc`, ['cursor']],
    [`?${FROM}&${TO}&cursor=%00%ff`, ['cursor']],
    [`?${FROM}&${FROM}&${TO}`, ['from']],
    [`?${FROM}&${TO}&status=CONFIRMED&status=EXTERNAL`, ['status']],
    [`?${FROM}&${TO}&page=2`, ['page']],
    [`?${FROM}&${TO}&Limit=2`, ['Limit']],
    [`?${FROM}&${TO}&status[]=CONFIRMED`, ['status[]']],
    [`?${FROM}&${TO}&__proto__=1`, ['__proto__']],
    [
      '?from=x&to=y&corporate_group_id=a&corporate_id=b&status=c&limit=d&cursor=e&page=f',
      ['from', 'to', 'corporate_group_id', 'corporate_id', 'status', 'limit', 'cursor', 'page'],
    ],
  ])('refuses %s, naming every parameter that is wrong', async (query, names) => {
    const { status, headers, text, body } = await pull(query);
    expect(status).toBe(400);
    expect(body.error).toEqual({
      code: 'VALIDATION_FAILED',
      message: expect.any(String),
      request_id: headers['x-request-id'],
      fields: expect.any(Object),
    });
    const { fields } = body.error as { fields: Record<string, unknown> };
    expect(Object.keys(fields).sort()).toEqual([...names].sort());
    for (const name of names) expect(Object.getOwnPropertyDescriptor(fields, name)?.value).toMatch(/./);
    expect(text).not.toContain('undefined');
  });

  it('names an unknown parameter in the words of the contract', async () => {
    const { body } = await pull(`?${FROM}&${TO}&corporate=31`);
    expect(body.error.fields).toEqual({ corporate: 'unknown parameter' });
  });

  it.each([
    `?from=2026-09-01T00:00:00Z&to=2026-10-02T00:00:00Z`,
    `?${FROM}&to=2026-09-01T00:00:00Z`,
    `?from=2026-09-01T00:00:00+00:00&to=2026-09-30T00:00:00.123456789-05:30`,
    `?from=2026-09-01T00:00:00%2B02:00&${TO}`,
    `?from=2024-02-29T23:59:59Z&to=2024-03-01T00:00:00Z`,
    `?${FROM}&${TO}&limit=100&status=EXTERNAL`,
    `?${FROM}&${TO}&status=CONFIRMED%2CEXTERNAL&corporate_id=31%2C0032`,
    `?${TO}&${FROM}&corporate_group_id=0003`,
  ])('accepts %s', async (query) => {
    const { status, body } = await pull(query);
    expect(body.error).toBeUndefined();
    expect(status).toBe(200);
  });

  it('accepts at most 1,000 corporates, repeated ones counted once', async () => {
    const corporates = (count: number) => Array.from({ length: count }, (_, index) => index + 1).join(',');
    const answer = async (ids: string) => {
      const { status, body } = await pull(`?${FROM}&${TO}&corporate_id=${ids}`);
      return [status, body.error?.code];
    };
    expect(await answer(corporates(1_000))).toEqual([404, 'CORPORATE_NOT_FOUND']);
    expect(await answer(corporates(1_001))).toEqual([400, 'VALIDATION_FAILED']);
    expect(await answer(Array(1_100).fill('31').join(','))).toEqual([200, undefined]);
  });

  it('judges the parameters before what they name', async () => {
    const { status, body } = await pull(`?${FROM}&${TO}&corporate_group_id=9&limit=0`);
    expect([status, Object.keys(body.error.fields)]).toEqual([400, ['limit']]);
  });

  it('judges the key before the parameters', async () => {
    const { status } = await service.get('/transactions?limit=0');
    expect(status).toBe(401);
  });
});
