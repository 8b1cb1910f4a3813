import { createHash, createHmac } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  CORPORATES,
  cancelled,
  confirmed,
  type EventLine,
  external,
  GROUP,
  idsOf,
  importEvents,
  openAccount,
  SEPTEMBER,
  voided,
} from '../support/transactions/e2e-samples.ts';

const DESIGN_CONFIRMED =
  '{"id":501,"status":"CONFIRMED","created_at":"2026-09-03T08:15:30.123Z","confirmed_at":"2026-09-03T08:16:02.000Z",' +
  '"correction_reference_id":null,"corporate":{"id":31,"name":"North Depot"},"corporate_group":{"id":3,"name":"Depots"},' +
  '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":45.20,"price_per_liter":2.18,"amount":98.54},' +
  '"odometer_reading":120345,"distance_traveled":512,"fuel_consumption":8.83,' +
  '"station":{"id":88,"name":"Ring Road 12","provider":{"id":4,"name":"Petrona"},"is_external":false},' +
  '"vehicle":{"id":900,"code":"V-17","number_plate":"ABC 123","chassis_number":null,"brand":"Isuzu","model":"D-Max",' +
  '"year":2022,"department":{"id":5,"name":"Logistics"}},"driver":{"id":77,"name":"Sam Field"},' +
  '"fees":{"total_fees":1.50,"total_vat":0.23,"total_amount":100.270000},"images":{"pump":"<pump>","odometer":null,' +
  '"expires_at":"<expires>"}}';
const DESIGN_EXTERNAL =
  '{"id":502,"status":"EXTERNAL","created_at":"2026-09-03T09:00:00.000Z","confirmed_at":null,' +
  '"correction_reference_id":null,"corporate":{"id":51,"name":"Lone Yard"},"corporate_group":null,' +
  '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":30.00,"price_per_liter":2.10,"amount":63.00},' +
  '"odometer_reading":null,"distance_traveled":null,"fuel_consumption":null,' +
  '"station":{"id":null,"name":"Village Fuel","provider":null,"is_external":true},' +
  '"vehicle":{"id":901,"code":null,"number_plate":"XYZ 9","chassis_number":null,"brand":null,"model":null,' +
  '"year":null,"department":null},"driver":{"id":78,"name":"Lee Moss"},' +
  '"fees":{"total_fees":0.00,"total_vat":0.00,"total_amount":63.000000},"images":{"pump":null,"odometer":null,' +
  '"expires_at":"<expires>"}}';

const designExternal = external(502, {
  created_at: '2026-09-03T09:00:00.000Z',
  corporate: { id: 51, name: 'Lone Yard' },
  corporate_group: null,
  fuel: { type: { id: 2, name: 'Diesel' }, liters: '30.00', price_per_liter: '2.10', amount: '63.00' },
  odometer_reading: null,
  distance_traveled: null,
  fuel_consumption: null,
  vehicle: {
    id: 901,
    code: null,
    number_plate: 'XYZ 9',
    chassis_number: null,
    brand: null,
    model: null,
    year: null,
    department: null,
  },
  driver: { id: 78, name: 'Lee Moss', mobile_number: null },
  fees: { total_fees: '0.00', total_vat: '0.00', total_amount: '63.000000' },
  images: { pump: null, odometer: null },
});

/** 200 transactions of October, three to a moment, over all corporates and both statuses; some withdrawn. */
const season = Array.from({ length: 200 }, (_, index): EventLine => {
  const corporate = CORPORATES[index % 3] ?? CORPORATES[0];
  const place = {
    created_at: new Date(Date.UTC(2026, 9, 1) + Math.floor(index / 3) * 3_600_000).toISOString(),
    corporate,
    corporate_group: corporate.id === 51 ? null : GROUP,
  };
  const id = 1000 + ((index * 37) % 200); // ids in another order than the times
  return index % 7 === 3 ? external(id, place) : confirmed(id, place);
});
const withdrawn = [1005, 1038, 1150];
const OCTOBER = 'from=2026-10-01T00:00:00Z&to=2026-10-31T00:00:00Z';

interface Filter {
  readonly corporates?: readonly number[];
  readonly group?: number;
  readonly type?: string;
}

/** The same list by the plainest means. */
function expectedIds({ corporates, group, type }: Filter = {}): number[] {
  return season
    .map(({ type: eventType, data }) => ({
      eventType,
      id: data.transaction_id as number,
      at: Date.parse(data.created_at as string),
      corporate: (data.corporate as { id: number }).id,
      group: (data.corporate_group as { id: number } | null)?.id,
    }))
    .filter((row) => !withdrawn.includes(row.id))
    .filter((row) => corporates === undefined || corporates.includes(row.corporate))
    .filter((row) => group === undefined || row.group === group)
    .filter((row) => type === undefined || row.eventType === type)
    .sort((a, b) => b.at - a.at || b.id - a.id)
    .map((row) => row.id);
}

describe('the pull channel', () => {
  const service = new ServiceProcess();
  let key = '';
  let prefix = '';
  let otherKey = '';

  const pull = (query: string) => service.get(`/transactions?${query}`, { key });

  /** All pages as the cursor leads; checks that every one but the last is full. */
  async function pullAll(query: string, limit: number): Promise<number[]> {
    const ids: number[] = [];
    let cursor = '';
    for (;;) {
      const { status, body } = await pull(`${query}&limit=${limit}${cursor}`);
      expect(status).toBe(200);
      ids.push(...idsOf(body));
      expect(body.pagination).toEqual({
        limit,
        has_more: body.pagination.next_cursor !== null,
        next_cursor: body.pagination.has_more ? expect.any(String) : null,
      });
      if (!body.pagination.has_more) return ids;
      expect(body.data).toHaveLength(limit);
      cursor = `&cursor=${encodeURIComponent(body.pagination.next_cursor)}`;
    }
  }

  beforeAll(async () => {
    await service.start();
    ({ key, prefix } = await openAccount(service, { structure: true }));
    ({ key: otherKey } = await openAccount(service, { id: 8 }));
    await importEvents(service, [
      confirmed(501),
      designExternal,
      ...season,
      ...withdrawn.map((id, index) => (index === 0 ? cancelled(id) : voided(id))),
      confirmed(9001, { account_id: 8 }),
    ]);
  });

  it('answers with the exact text of the record, in the order of the specification', async () => {
    const { status, text, body } = await pull(SEPTEMBER);
    expect(status).toBe(200);
    const { pump, expires_at: expires } = body.data[1].images;
    const records = `${DESIGN_EXTERNAL},${DESIGN_CONFIRMED}`
      .replaceAll('<expires>', expires)
      .replace('<pump>', pump);
    expect(text).toBe(`{"data":[${records}],"pagination":{"limit":50,"has_more":false,"next_cursor":null}}`);
  });

  it('presigns image URLs for one hour with AWS Signature Version 4', async () => {
    const before = Date.now();
    const { body } = await pull(SEPTEMBER);
    const { pump, expires_at: expires } = body.data[1].images;
    const url = new URL(pump);
    const stamp = url.searchParams.get('X-Amz-Date') ?? '';
    const day = stamp.slice(0, 8);
    expect(url.origin + url.pathname).toBe('https://photos.example.com/fuel-photos/photos/501/pump.jpg');
    expect(Object.fromEntries(url.searchParams)).toEqual({
      'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
      'X-Amz-Credential': `SAMPLEACCESSKEY/${day}/us-east-1/s3/aws4_request`,
      'X-Amz-Date': expect.stringMatching(/^\d{8}T\d{6}Z$/),
      'X-Amz-Expires': '3600',
      'X-Amz-SignedHeaders': 'host',
      'X-Amz-Signature': expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const issued = Date.parse(stamp.replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/, '$1-$2-$3T$4:$5:$6Z'));
    expect(Date.parse(expires) - issued).toBe(3_600_000);
    expect(Math.abs(issued - before)).toBeLessThan(5_000);

    const query = [...url.searchParams]
      .filter(([name]) => name !== 'X-Amz-Signature')
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .sort()
      .join('&');
    const canonical = `GET\n${url.pathname}\n${query}\nhost:${url.host}\n\nhost\nUNSIGNED-PAYLOAD`;
    const scope = `${day}/us-east-1/s3/aws4_request`;
    const toSign = `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`;
    const hmac = (by: string | Buffer, text: string) => createHmac('sha256', by).update(text).digest();
    const signingKey = scope.split('/').reduce<string | Buffer>(hmac, 'AWS4sample-secret-access-key');
    expect(url.searchParams.get('X-Amz-Signature')).toBe(hmac(signingKey, toSign).toString('hex'));
  });

  it.each([1, 7, 100])('pages through everything, newest first, %i at a time', async (limit) => {
    const filters = limit === 1 ? '&corporate_id=51&status=EXTERNAL' : '';
    const expected =
      limit === 1 ? expectedIds({ corporates: [51], type: 'ExternalTransactionRecorded' }) : expectedIds();
    expect(await pullAll(OCTOBER + filters, limit)).toEqual(expected);
  });

  it.each<[string, Filter]>([
    ['corporate_id=31', { corporates: [31] }],
    ['corporate_id=51,31,31', { corporates: [31, 51] }],
    ['corporate_id=0031', { corporates: [31] }],
    ['corporate_group_id=3', { group: 3 }],
    ['corporate_group_id=3&corporate_id=32', { group: 3, corporates: [32] }],
    ['status=EXTERNAL', { type: 'ExternalTransactionRecorded' }],
    ['status=CONFIRMED', { type: 'TransactionConfirmed' }],
    ['status=EXTERNAL,CONFIRMED', {}],
    ['corporate_group_id=3&corporate_id=31,32&status=CONFIRMED', { group: 3, type: 'TransactionConfirmed' }],
  ])('filters by %s', async (filters, expected) => {
    expect(await pullAll(`${OCTOBER}&${filters}`, 40)).toEqual(expectedIds(expected));
  });

  it('takes both ends of the range as inclusive, to the millisecond', async () => {
    const at = '2026-09-03T08:15:30.123Z';
    const range = async (from: string, to: string) => idsOf((await pull(`from=${from}&to=${to}`)).body);
    expect(await range(at, at)).toEqual([501]);
    expect(await range('2026-09-03T08:15:30.124Z', '2026-09-03T08:59:00Z')).toEqual([]);
    expect(await range('2026-09-03T08:00:00Z', '2026-09-03T08:15:30.122Z')).toEqual([]);
    expect(await range('2026-09-03T11:15:30.1230%2B03:00', '2026-09-03T11:15:30.1239+03:00')).toEqual([501]);
  });

  it('says has_more only when there is more', async () => {
    expect((await pull(`${SEPTEMBER}&limit=2`)).body.pagination).toEqual({
      limit: 2,
      has_more: false,
      next_cursor: null,
    });
    expect((await pull(`${SEPTEMBER}&limit=1`)).body.pagination.has_more).toBe(true);
    const none = await pull('from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z');
    expect(none.text).toBe('{"data":[],"pagination":{"limit":50,"has_more":false,"next_cursor":null}}');
  });

  it('keeps a cursor bound to its filters and range, but not to its limit', async () => {
    const first = await pull(`${OCTOBER}&limit=5&status=CONFIRMED`);
    const cursor = `cursor=${encodeURIComponent(first.body.pagination.next_cursor)}`;
    const wider = await pull(`${OCTOBER}&limit=10&status=CONFIRMED&${cursor}`);
    expect(idsOf(wider.body)).toEqual(expectedIds({ type: 'TransactionConfirmed' }).slice(5, 15));
    for (const query of [OCTOBER, `${OCTOBER}&status=EXTERNAL`, `${SEPTEMBER}&status=CONFIRMED`]) {
      const other = await pull(`${query}&${cursor}`);
      expect([other.status, Object.keys(other.body.error.fields)]).toEqual([400, ['cursor']]);
    }
  });

  it('refuses a cursor that was changed in any character, or belongs to another account', async () => {
    const cursor = (await pull(`${OCTOBER}&limit=5`)).body.pagination.next_cursor as string;
    for (let at = 0; at < cursor.length; at++) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
      const { status, body } = await pull(`${OCTOBER}&cursor=${encodeURIComponent(changed)}`);
      expect([at, status, Object.keys(body.error?.fields ?? {})]).toEqual([at, 400, ['cursor']]);
    }
    const theirs = await service.get(`/transactions?${OCTOBER}&cursor=${encodeURIComponent(cursor)}`, {
      key: otherKey,
    });
    expect(theirs.status).toBe(400);
    expect((await pull(`${OCTOBER}&cursor=${encodeURIComponent(cursor)}`)).status).toBe(200);
  });

  it('shows each account its own transactions only', async () => {
    const theirs = await service.get(`/transactions?${SEPTEMBER}`, { key: otherKey });
    expect(idsOf(theirs.body)).toEqual([9001]);
  });

  it('answers 404 for corporates and groups that are not the account’s, the group first', async () => {
    const code = async (query: string, by = key) => {
      const { status, body } = await service.get(`/transactions?${OCTOBER}&${query}`, { key: by });
      return `${status} ${body.error.code} ${Object.keys(body.error)}`;
    };
    expect(await code('corporate_id=31,99')).toBe('404 CORPORATE_NOT_FOUND code,message,request_id');
    expect(await code('corporate_group_id=9')).toBe('404 CORPORATE_GROUP_NOT_FOUND code,message,request_id');
    expect(await code('corporate_group_id=9&corporate_id=99')).toContain('CORPORATE_GROUP_NOT_FOUND');
    expect(await code('corporate_group_id=3&corporate_id=51')).toContain('404 CORPORATE_NOT_FOUND');
    expect(await code('corporate_id=31', otherKey)).toContain('404 CORPORATE_NOT_FOUND');
  });

  it('loses nothing and repeats nothing when transactions arrive or vanish between two pages', async () => {
    const range = 'from=2026-11-01T00:00:00Z&to=2026-11-30T00:00:00Z';
    const at = (day: number) => ({ created_at: `2026-11-0${day}T00:00:00Z` });
    await importEvents(
      service,
      [1, 2, 3, 4, 5, 6].map((day) => confirmed(3000 + day, at(day))),
    );
    const first = await pull(`${range}&limit=2`);
    await importEvents(service, [confirmed(3009, at(9)), voided(3004), confirmed(3100, at(4))]);
    const rest = await pull(`${range}&cursor=${encodeURIComponent(first.body.pagination.next_cursor)}`);
    expect([...idsOf(first.body), ...idsOf(rest.body)]).toEqual([3006, 3005, 3100, 3003, 3002, 3001]);
  });

  it('shows mobile numbers only while the key has them enabled, and only where one was recorded', async () => {
    const drivers = async () =>
      (await pull(SEPTEMBER)).body.data.map(({ driver }: { driver: unknown }) => driver);
    await service.done(['key', 'driver-mobile', prefix, 'on', '--wait']);
    expect(await drivers()).toEqual([
      { id: 78, name: 'Lee Moss' },
      { id: 77, name: 'Sam Field', mobile_number: '+15550100' },
    ]);
    await service.done(['key', 'driver-mobile', prefix, 'off', '--wait']);
    expect((await drivers())[1]).toEqual({ id: 77, name: 'Sam Field' });
  });
});
