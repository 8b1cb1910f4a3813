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

/** 200 transactions of October, three at each moment, with all corporates and both statuses. Some are withdrawn. */
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

/** Returns the same list by the plainest means. */
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

  const pull = (query: string) => service.get(`/transactions?${query}`, { key });

  /** Follows the cursors through all pages, and checks that every page except the last is full. */
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
    ({ key } = await openAccount(service, { structure: true }));
    await importEvents(service, [
      confirmed(501),
      designExternal,
      ...season,
      ...withdrawn.map((id, index) => (index === 0 ? cancelled(id) : voided(id))),
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
});
