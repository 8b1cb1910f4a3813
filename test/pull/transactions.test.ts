import { describe, expect, test } from 'vitest';
import { projectTransaction } from '../../projections/transactions.ts';
import { FuelError } from '../../src/base/errors.ts';
import type { ViewChange } from '../../src/records/project-event.ts';
import { ACCOUNT, PREFIX, RANGE, startTestApi } from '../support/service/api.ts';
import { confirmedData, externalData, showing } from '../support/transactions/records.ts';

const at = (text: string) => Date.parse(text);
const ids = (answer: { body: { data: { id: number }[] } }) => answer.body.data.map(({ id }) => id);

function recorded(
  id: number,
  overrides: Readonly<Record<string, unknown>> = {},
  external = false,
): ViewChange {
  const type = external ? 'ExternalTransactionRecorded' : 'TransactionConfirmed';
  const data = (external ? externalData : confirmedData)({ transaction_id: id, ...overrides });
  return { position: id, stream: `transaction-${id}`, type, change: projectTransaction(type, data, 0) };
}

/** Returns a row in the range that differs only in the given members. */
const row = (id: number, sample: Partial<Parameters<typeof showing>[0]> = {}) =>
  showing({ id, createdAtMs: at('2026-09-10T00:00:00Z'), ...sample });

describe('the list of transactions', () => {
  test('is the records’ text and the page’s end', async () => {
    const api = await startTestApi();
    await api.show(recorded(501));
    const { text } = await api.get(RANGE);
    expect(text).toMatch(/^\{"data":\[\{"id":501,"status":"CONFIRMED",/);
    expect(text).toContain('"liters":45.20,');
    expect(text).toContain('"total_amount":100.270000}');
    expect(text).toMatch(/\],"pagination":\{"limit":50,"has_more":false,"next_cursor":null\}\}$/);
  });

  test('is empty where there is nothing', async () => {
    const api = await startTestApi();
    expect((await api.get(RANGE)).text).toBe(
      '{"data":[],"pagination":{"limit":50,"has_more":false,"next_cursor":null}}',
    );
  });

  test('has both ends of the range in it, to the millisecond', async () => {
    const api = await startTestApi();
    const from = at('2026-09-10T00:00:00.100Z');
    const to = at('2026-09-10T00:00:00.200Z');
    await api.show(...[from - 1, from, to, to + 1].map((createdAtMs, index) => row(index, { createdAtMs })));
    const answer = await api.get('from=2026-09-10T00:00:00.100Z&to=2026-09-10T00:00:00.200Z');
    expect(ids(answer)).toEqual([2, 1]);
  });

  test('has the caller’s own transactions only', async () => {
    const api = await startTestApi();
    await api.show(row(1), row(2, { accountId: ACCOUNT + 1 }));
    expect(ids(await api.get(RANGE))).toEqual([1]);
  });

  test('has the statuses asked for', async () => {
    const api = await startTestApi();
    await api.show(row(1), row(2, { status: 'EXTERNAL' }));
    expect(ids(await api.get(`${RANGE}&status=EXTERNAL`))).toEqual([2]);
    expect(ids(await api.get(`${RANGE}&status=CONFIRMED`))).toEqual([1]);
    expect(ids(await api.get(`${RANGE}&status=EXTERNAL,CONFIRMED`))).toEqual([2, 1]);
  });

  test('filters by the corporate and group that the record shows', async () => {
    const api = await startTestApi();
    await api.show(
      row(1, { corporateId: 31, corporateGroupId: 3 }),
      row(2, { corporateId: 51 }),
      row(3, { corporateId: 31, corporateGroupId: null }),
    );
    expect(ids(await api.get(`${RANGE}&corporate_group_id=3`))).toEqual([1]);
    expect(ids(await api.get(`${RANGE}&corporate_id=31`))).toEqual([3, 1]);
    expect(ids(await api.get(`${RANGE}&corporate_id=51,31,31`))).toEqual([3, 2, 1]);
    expect(ids(await api.get(`${RANGE}&corporate_group_id=3&corporate_id=31`))).toEqual([1]);
    expect(ids(await api.get(`${RANGE}&corporate_group_id=4`))).toEqual([]);
  });

  test.each([
    ['an unknown group', 'corporate_group_id=99', 'CORPORATE_GROUP_NOT_FOUND'],
    ['an unknown corporate', 'corporate_id=99', 'CORPORATE_NOT_FOUND'],
    ['one foreign corporate among the account’s', 'corporate_id=31,99', 'CORPORATE_NOT_FOUND'],
    ['a corporate of another group', 'corporate_group_id=4&corporate_id=31', 'CORPORATE_NOT_FOUND'],
    [
      'a corporate without group where one is given',
      'corporate_group_id=3&corporate_id=51',
      'CORPORATE_NOT_FOUND',
    ],
    ['both foreign', 'corporate_group_id=99&corporate_id=99', 'CORPORATE_GROUP_NOT_FOUND'],
    ['a negative group', 'corporate_group_id=-1', 'CORPORATE_GROUP_NOT_FOUND'],
  ])('is a 404 for %s', async (_, filter, code) => {
    const api = await startTestApi();
    const answer = await api.get(`${RANGE}&${filter}`);
    expect(answer.status).toBe(404);
    expect(answer.body.error.code).toBe(code);
  });

  test('is a 400 before it is a 404, with every problem at once', async () => {
    const api = await startTestApi();
    const answer = await api.get('from=x&to=2026-09-01T00:00:00Z&corporate_id=99&limit=0&page=2');
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe('VALIDATION_FAILED');
    expect(Object.keys(answer.body.error.fields).toSorted()).toEqual(['from', 'limit', 'page']);
    expect(answer.body.error.fields.page).toBe('unknown parameter');
  });

  test('shows the driver’s mobile number only when the key has it enabled', async () => {
    const api = await startTestApi();
    await api.show(recorded(501));
    expect((await api.get(RANGE)).body.data[0].driver).not.toHaveProperty('mobile_number');
    api.apply({ type: 'KeyDriverMobileSet', data: { account_id: ACCOUNT, prefix: PREFIX, enabled: true } });
    expect((await api.get(RANGE)).body.data[0].driver.mobile_number).toBe('+15550100');
  });

  test('has image URLs that expire an hour after their issue', async () => {
    const api = await startTestApi();
    await api.show(recorded(501));
    const { images } = (await api.get(RANGE)).body.data[0];
    expect(images.expires_at).toBe('2026-09-15T13:00:00.000Z');
    const url = new URL(images.pump);
    expect(url.pathname).toBe('/fuel-photos/photos/501/pump.jpg');
    expect(url.searchParams.get('X-Amz-Date')).toBe('20260915T120000Z');
    expect(url.searchParams.get('X-Amz-Expires')).toBe('3600');
    expect(images.odometer).toBeNull();
  });

  test.each(['STORE_UNAVAILABLE', 'STORE_BUSY', 'STORE_CLOSED'] as const)(
    'is unavailable, not broken, while the view can’t serve: %s',
    async (code) => {
      const api = await startTestApi({
        view: { page: () => Promise.reject(new FuelError(code, 'secret path')) },
      });
      const answer = await api.get(RANGE);
      expect(answer.status).toBe(503);
      expect(answer.body.error.code).toBe('SERVICE_UNAVAILABLE');
      expect(answer.headers).toHaveProperty('retry-after');
      expect(answer.text).not.toContain('secret path');
      expect(api.logLines).toContainEqual(
        expect.objectContaining({ level: 40, request_id: answer.headers['x-request-id'] }),
      );
    },
  );

  test('does not show its own error, but logs it', async () => {
    const api = await startTestApi({ view: { page: () => Promise.reject(new TypeError('secret path')) } });
    const answer = await api.get(RANGE);
    expect(answer.status).toBe(500);
    expect(answer.body.error.code).toBe('INTERNAL_ERROR');
    expect(answer.text).not.toContain('secret path');
    const logged = api.logLines.find(({ level }) => level === 50);
    expect(logged).toMatchObject({ request_id: answer.headers['x-request-id'] });
    expect(JSON.stringify(logged)).toContain('secret path');
  });
});

describe('paging', () => {
  async function walk(api: Awaited<ReturnType<typeof startTestApi>>, query: string) {
    const seen: number[] = [];
    let cursor: string | null = null;
    do {
      const answer = await api.get(cursor === null ? query : `${query}&cursor=${cursor}`);
      expect(answer.status).toBe(200);
      expect(answer.body.pagination.has_more).toBe(answer.body.pagination.next_cursor !== null);
      seen.push(...ids(answer));
      cursor = answer.body.pagination.next_cursor;
    } while (cursor !== null);
    return seen;
  }

  test('goes through everything once, with no empty last page', async () => {
    const api = await startTestApi();
    await api.show(...Array.from({ length: 6 }, (_, index) => row(index)));
    expect(await walk(api, `${RANGE}&limit=2`)).toEqual([5, 4, 3, 2, 1, 0]);
    const last = await api.get(`${RANGE}&limit=6`);
    expect(last.body.pagination).toEqual({ limit: 6, has_more: false, next_cursor: null });
  });

  test('may change the page size, but neither filters nor range', async () => {
    const api = await startTestApi();
    await api.show(row(1), row(2), row(3));
    const { next_cursor: cursor } = (await api.get(`${RANGE}&limit=1`)).body.pagination;
    expect(ids(await api.get(`${RANGE}&limit=2&cursor=${cursor}`))).toEqual([2, 1]);
    for (const query of [`${RANGE}&status=CONFIRMED`, RANGE.replace('09-01', '09-02')]) {
      const answer = await api.get(`${query}&cursor=${cursor}`);
      expect(answer.status).toBe(400);
      expect(Object.keys(answer.body.error.fields)).toEqual(['cursor']);
    }
  });
});

describe('other paths and methods', () => {
  test.each([
    '/',
    '/api/v1/integration',
    '/api/v1/integration/transactions/',
    '/%zz',
    '//',
    '/api/v1/integration/Transactions',
    '/api/v1/integration//transactions',
    '/api/v1/integration/%74ransactions',
    '/api/v1/integration/transactions/501',
    '/healthz',
    '/metrics',
    '/openapi.yaml',
  ])('%s is NOT_FOUND, without a key too', async (path) => {
    const api = await startTestApi();
    const answer = await api.get(path, { key: null });
    expect(answer.status).toBe(404);
    expect(answer.body.error.code).toBe('NOT_FOUND');
    expect(answer.body.error.request_id).toBe(answer.headers['x-request-id']);
  });

  test.each(['POST', 'DELETE', 'OPTIONS', 'HEAD'] as const)(
    '%s is METHOD_NOT_ALLOWED and Allow says GET',
    async (method) => {
      const api = await startTestApi();
      const answer = await api.get(RANGE, { method, key: null });
      expect(answer.status).toBe(405);
      expect(answer.headers.allow).toBe('GET');
      if (method !== 'HEAD') expect(answer.body.error.code).toBe('METHOD_NOT_ALLOWED');
    },
  );
});
