import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ParameterReading, readParameters } from '../../src/pull/parameters.ts';

const place = { createdAtMs: 5, id: 9 };
const range = 'from=2026-09-01T00:00:00Z&to=2026-09-30T00:00:00Z';

function read(query: string): ParameterReading {
  return readParameters(query, (text) =>
    text === 'good' ? place : text === 'others' ? 'other filters' : 'malformed',
  );
}

function fieldsOf(query: string): Readonly<Record<string, string>> {
  const reading = read(query);
  return reading.ok ? {} : reading.fields;
}

function queryOf(query: string) {
  const reading = read(query);
  if (!reading.ok) throw new Error(JSON.stringify(reading.fields));
  return reading.query;
}

describe('the parameters of the list', () => {
  test('are a range alone, with the defaults for the rest', () => {
    expect(queryOf(range)).toEqual({
      fromMs: Date.parse('2026-09-01T00:00:00Z'),
      toMs: Date.parse('2026-09-30T00:00:00Z'),
      references: { corporate_group_id: undefined, corporate_id: undefined },
      statuses: ['CONFIRMED', 'EXTERNAL'],
      after: undefined,
      limit: 50,
    });
  });

  test('from and to are required', () => {
    expect(fieldsOf('')).toEqual({ from: 'is required', to: 'is required' });
  });

  test.each([
    '2026-09-01',
    '2026-09-01T00:00:00',
    '2026-02-30T00:00:00Z',
    '2026-09-01T25:00:00Z',
    '2026-09-01T00:00Z',
    '2026-09-01 00:00:00Z',
    'yesterday',
    '1788220800',
  ])('%s is not an ISO 8601 date-time', (text) => {
    const query = new URLSearchParams({ from: text, to: text });
    expect(Object.keys(fieldsOf(`${query}`))).toEqual(['from', 'to']);
  });

  test('digits past milliseconds are cut', () => {
    expect(queryOf('from=2026-09-01T00:00:00.1239999Z&to=2026-09-01T00:00:00.123Z').fromMs).toBe(
      Date.parse('2026-09-01T00:00:00.123Z'),
    );
  });

  test.each(['2026-09-01T02:00:00+02:00', '2026-09-01T02:00:00%2B02:00', '2026-09-01T02:00:00%2002:00'])(
    'an offset counts, also where its plus sign arrives as a space: %s',
    (from) => {
      expect(queryOf(`from=${from}&to=2026-09-02T00:00:00Z`).fromMs).toBe(Date.parse('2026-09-01T00:00:00Z'));
    },
  );

  test('the range may be exactly 31 days long', () => {
    expect(read('from=2026-08-01T00:00:00Z&to=2026-09-01T00:00:00Z').ok).toBe(true);
  });

  test('a range one millisecond longer than 31 days is a problem of to', () => {
    expect(Object.keys(fieldsOf('from=2026-08-01T00:00:00Z&to=2026-09-01T00:00:00.001Z'))).toEqual(['to']);
  });

  test('the range may be a single moment', () => {
    expect(read('from=2026-08-01T00:00:00Z&to=2026-08-01T00:00:00Z').ok).toBe(true);
  });

  test('an end before the start is a problem of to', () => {
    expect(Object.keys(fieldsOf('from=2026-08-01T00:00:00.001Z&to=2026-08-01T00:00:00Z'))).toEqual(['to']);
  });

  test('every problem is found at once', () => {
    const query =
      'from=x&corporate_group_id=a&corporate_id=1,&status=VOID&limit=0&cursor=bad&corporate=1&limits=';
    expect(Object.keys(fieldsOf(query)).toSorted()).toEqual(
      [
        'from',
        'to',
        'corporate_group_id',
        'corporate_id',
        'status',
        'limit',
        'cursor',
        'corporate',
        'limits',
      ].toSorted(),
    );
  });

  test('an unknown parameter is a problem under its name', () => {
    expect(fieldsOf(`${range}&statuses=EXTERNAL`)).toEqual({ statuses: 'unknown parameter' });
    expect(fieldsOf(`${range}&From=x`)).toEqual({ From: 'unknown parameter' });
  });

  test('a parameter called __proto__ or constructor is an unknown one like any other', () => {
    expect(JSON.stringify(fieldsOf(`${range}&__proto__=1&constructor=2`))).toBe(
      '{"__proto__":"unknown parameter","constructor":"unknown parameter"}',
    );
  });

  test.each(['from', 'to', 'corporate_group_id', 'corporate_id', 'status', 'limit', 'cursor'])(
    '%s given twice is a problem, even with the same value',
    (name) => {
      const value = new URLSearchParams(range).get(name) ?? '1';
      const base = new URLSearchParams(range);
      base.delete(name);
      expect(Object.keys(fieldsOf(`${base}&${name}=${value}&${name}=${value}`))).toEqual([name]);
    },
  );

  test.each(['from', 'to', 'corporate_group_id', 'corporate_id', 'status', 'limit', 'cursor'])(
    '%s may not be empty',
    (name) => {
      const base = new URLSearchParams(range);
      base.delete(name);
      expect(fieldsOf(`${base}&${name}=`)).toEqual({ [name]: 'must not be empty' });
      expect(fieldsOf(`${base}&${name}`)).toEqual({ [name]: 'must not be empty' });
    },
  );

  test.each(['1', '100', '050'])('limit may be %s', (limit) => {
    expect(queryOf(`${range}&limit=${limit}`).limit).toBe(Number(limit));
  });

  test.each(['0', '-1', '101', '99999999999999999999', '10.0', '1e1', '0x10', 'ten', '%2010'])(
    'limit may not be %s',
    (limit) => {
      expect(Object.keys(fieldsOf(`${range}&limit=${limit}`))).toEqual(['limit']);
    },
  );

  test('status takes both in any order, and duplicates collapse', () => {
    expect(queryOf(`${range}&status=EXTERNAL,CONFIRMED,EXTERNAL`).statuses).toEqual([
      'CONFIRMED',
      'EXTERNAL',
    ]);
    expect(queryOf(`${range}&status=EXTERNAL`).statuses).toEqual(['EXTERNAL']);
  });

  test.each(['PENDING', 'VOID', 'CANCELED', 'confirmed', 'CONFIRMED,', ',EXTERNAL', 'CONFIRMED, EXTERNAL'])(
    'status may not be %s',
    (status) => {
      expect(Object.keys(fieldsOf(`${range}&status=${status}`))).toEqual(['status']);
    },
  );

  test('corporate ids collapse by number: leading zeros do not make another', () => {
    expect(queryOf(`${range}&corporate_id=1,1,01,2`).references.corporate_id).toEqual([1, 2]);
    expect(queryOf(`${range}&corporate_id=31,32`).references.corporate_id).toEqual([31, 32]);
  });

  test.each(['1,', ',1', '1,,2', '-1', '1.0', 'a', '1;2', '9007199254740992', '1,9007199254740992', '1, 2'])(
    'corporate_id may not be %s',
    (ids) => {
      expect(Object.keys(fieldsOf(`${range}&corporate_id=${ids}`))).toEqual(['corporate_id']);
    },
  );

  test('corporate_id takes 1,000 different ids and not one more', () => {
    const ids = Array.from({ length: 1_001 }, (_, index) => index);
    expect(
      queryOf(`${range}&corporate_id=${[...ids.slice(1), 1, 2, 3]}`).references.corporate_id,
    ).toHaveLength(1_000);
    expect(Object.keys(fieldsOf(`${range}&corporate_id=${ids}`))).toEqual(['corporate_id']);
  });

  test('corporate_group_id is one safe integer', () => {
    expect(queryOf(`${range}&corporate_group_id=003`).references.corporate_group_id).toBe(3);
    expect(queryOf(`${range}&corporate_group_id=9007199254740991`).references.corporate_group_id).toBe(
      2 ** 53 - 1,
    );
    expect(queryOf(`${range}&corporate_group_id=-0`).references.corporate_group_id).toBe(0); // not -0
    for (const text of ['9007199254740992', '1,2', 'x', '1.5', '0x1']) {
      expect(Object.keys(fieldsOf(`${range}&corporate_group_id=${text}`))).toEqual(['corporate_group_id']);
    }
  });

  test('a cursor is a place or a problem', () => {
    expect(queryOf(`${range}&cursor=good`).after).toEqual(place);
    expect(Object.keys(fieldsOf(`${range}&cursor=bad`))).toEqual(['cursor']);
    expect(Object.keys(fieldsOf(`${range}&cursor=others`))).toEqual(['cursor']);
  });

  test.each([
    'from=x&to=2026-09-30T00:00:00Z',
    'from=2026-09-01T00:00:00Z&to=x',
    'from=x&to=x',
    `${range}&corporate_group_id=x`,
    `${range}&corporate_id=x`,
    `${range}&status=x`,
  ])('a cursor is not compared with filters that have a problem: %s', (query) => {
    const seen: unknown[] = [];
    readParameters(`${query}&cursor=good`, (_, filters) => {
      seen.push(filters);
      return place;
    });
    expect(seen).toEqual([undefined]);
  });

  const notADateTime =
    'must be an ISO 8601 date-time with seconds and an offset that exists, such as 2026-09-01T00:00:00Z';
  test.each([
    ['to=2026-09-30T00:00:00Z&from=x', 'from', notADateTime],
    ['from=2026-09-01T00:00:00Z&to=x', 'to', notADateTime],
    ['from=2026-09-01T00:00:00Z&to=2026-08-01T00:00:00Z', 'to', 'must not be before from'],
    ['from=2026-09-01T00:00:00Z&to=2026-11-01T00:00:00Z', 'to', 'must be at most 31 days after from'],
    [`${range}&limit=1&limit=1`, 'limit', 'must be given only once'],
    [`${range}&corporate_group_id=x`, 'corporate_group_id', 'must be an integer within 2^53-1'],
    [
      `${range}&corporate_id=x`,
      'corporate_id',
      'must be an integer or a comma-separated list of integers within 2^53-1',
    ],
    [`${range}&corporate_id=${[...Array(1_001).keys()]}`, 'corporate_id', 'must be at most 1000 integers'],
    [`${range}&status=x`, 'status', 'must be CONFIRMED or EXTERNAL, or several separated by commas'],
    [`${range}&limit=x`, 'limit', 'must be an integer'],
    [`${range}&limit=0`, 'limit', 'must be at least 1'],
    [`${range}&limit=101`, 'limit', 'must be at most 100'],
    [`${range}&cursor=bad`, 'cursor', 'is malformed: pass next_cursor as it was received'],
    [
      `${range}&cursor=others`,
      'cursor',
      'was made with other filters: pass the filters and the range of the page before',
    ],
  ])('the problem of %s tells the client what %s must be', (query, name, problem) => {
    expect(fieldsOf(query)).toEqual({ [name]: problem });
  });

  test('whatever the query, it is read or its problems are named', () => {
    const name = fc.oneof(
      fc.string(),
      fc.constantFrom('from', 'to', 'limit', 'status', 'corporate_id', 'cursor'),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), fc.string(), (pairs, raw) => {
        for (const query of [`${new URLSearchParams(pairs)}`, raw]) {
          const reading = read(query);
          if (!reading.ok) expect(Object.keys(reading.fields).length).toBeGreaterThan(0);
        }
      }),
    );
  });
});
