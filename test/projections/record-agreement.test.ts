import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutRecord, recordText, redactedRecord } from '../../projections/record.ts';
import { projectTransaction } from '../../projections/transactions.ts';
import { generateTransactions } from '../../src/customers/sample/generator.ts';
import { faultsOf, schemaOf } from '../../src/domain/events.ts';
import { type WithDriver, withoutDriver } from '../../src/domain/transaction.ts';
import type { TransactionEventType } from '../../src/domain/transaction-events.ts';
import { RecordFault } from '../../src/domain/values/printed.ts';
import { faultsOfText } from '../support/openapi/validate.ts';
import { type Path, pathsOf, withValue } from '../support/transactions/mutations.ts';
import { expectedRecord } from '../support/transactions/record-oracle.ts';

interface Line {
  readonly type: TransactionEventType;
  readonly data: Readonly<Record<string, unknown>>;
}

const samples: Line[] = [
  ...generateTransactions({
    seed: 5,
    count: 400,
    days: 30,
    endMs: Date.UTC(2026, 8, 30),
    accountIds: [7, 8],
  }),
];

/** Values that are wrong in practice, and some that only look wrong. */
const strangeValues = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, true, false, Number.NaN, Number.POSITIVE_INFINITY, [], {}, [1]),
  fc.constantFrom(0, -0, 1, -1, 1.5, 2 ** 53 - 1, 2 ** 53, -(2 ** 53) + 1, -(2 ** 53), 1e300),
  fc.constantFrom(
    '',
    '0',
    '-0',
    '00',
    '01.5',
    '.5',
    '5.',
    '+1',
    '1e3',
    '1,5',
    ' 1',
    '1\n',
    '١',
    'null',
    '-',
    '0x1',
  ),
  fc.constantFrom(
    { id: 1, name: 'x' },
    { id: 1 },
    { name: 'x' },
    { id: '1', name: 'x' },
    { id: 1, name: null },
  ),
  fc.constantFrom(
    '2026-02-29T00:00:00Z',
    '2028-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-09-03',
    '2026-09-03T08:15:30',
    '2026-09-03T24:00:00Z',
    '2026-09-03T08:15Z',
    '2026-09-03T08:15:30+0530',
    '2026-09-03T08:15:30.9999999-12:00',
    '2026-09-03T08:15:30+05',
    '2026-09-03t08:15:30z',
    '2026-09-03T23:59:60Z',
    '2026-13-01T00:00:00Z',
  ),
  fc
    .tuple(fc.integer(), fc.stringMatching(/^[0-9]{0,8}$/))
    .map(([whole, fraction]) => `${whole}.${fraction}`),
  fc.stringMatching(/^-?[1-9][0-9]{30,50}$/),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('-0.00', '-0.01', { toString: 1 }, [{ toString: null }]),
  fc
    .tuple(fc.constantFrom('x', 'é', '😀'), fc.integer({ min: 999, max: 1_001 }))
    .map(([character, count]) => character.repeat(count)),
  fc.integer(),
  fc.double(),
);

const mutatedLines = fc
  .tuple(fc.constantFrom(...samples), fc.nat(), fc.array(fc.tuple(fc.nat(), strangeValues), { maxLength: 3 }))
  .map(([sample, extra, changes]): Line => {
    const paths: Path[] = [...pathsOf(sample.data), ['station', 'id'], ['station', 'provider'], ['reason']];
    const containers: Path[] = paths.filter((path) => path.length === 1);
    let data = sample.data;
    for (const [n, value] of changes)
      data = withValue(data, paths[n % paths.length] ?? ['transaction_id'], value);
    // An unknown field, at the top or inside, never changes the verdict.
    const inside = containers[extra % containers.length] ?? ['data'];
    data = withValue(data, extra % 2 === 0 ? ['unknown_field'] : [...inside, 'unknown_field'], extra);
    return { type: sample.type, data };
  });

function render({ type, data }: Line): ReturnType<typeof projectTransaction> | RecordFault {
  try {
    return projectTransaction(type, data, 0);
  } catch (error) {
    if (error instanceof RecordFault) return error;
    throw error;
  }
}

function fits({ type, data }: Line): boolean {
  const schema = schemaOf(type);
  return schema !== undefined && faultsOf(schema, data).length === 0;
}

const expiresAt = '2026-09-30T01:00:00.000Z';

function withoutImages(record: string): string {
  return `${cutRecord(record, { mobileNumber: true }).beforeImages}null,"odometer":null}}`;
}

function expectAgreement(line: Line): void {
  const change = render(line);
  expect(!(change instanceof RecordFault), change instanceof Error ? change.message : 'it was rendered').toBe(
    fits(line),
  );
  if (change instanceof RecordFault || change.kind !== 'show') return;
  const text = recordText(withoutImages(change.row.record), {
    mobileNumber: true,
    expiresAt,
    presign: (key) => key,
  });
  expect(text).toBe(expectedRecord(line.type, line.data, expiresAt));
  expect(faultsOfText({ $ref: '#/components/schemas/Transaction' }, text)).toEqual([]);
}

describe('the rendering of a record', () => {
  it('says of every sample exactly what was recorded, in the order of the specification', () => {
    for (const sample of samples) {
      expect(fits(sample)).toBe(true);
      expectAgreement(sample);
    }
  });

  it('without its driver is what the redacted event renders to, and differs from it in nothing else', () => {
    const agrees = ({ type, data }: Line): void => {
      const change = render({ type, data });
      if (change instanceof RecordFault || change.kind !== 'show') return;
      const redacted = {
        type,
        data: withoutDriver(data as unknown as WithDriver) as unknown as Line['data'],
      };
      const rendered = render(redacted);
      const row = { ...change.row, record: redactedRecord(change.row.record) };
      expect(rendered).toEqual({ ...change, row });
      expect(redactedRecord(row.record)).toBe(row.record);
    };
    fc.assert(fc.property(mutatedLines, agrees), { numRuns: 1_000 });
  });

  it('refuses exactly what the schema refuses, and prints the rest as recorded', () => {
    fc.assert(fc.property(mutatedLines, expectAgreement), { numRuns: 4_000 });
  });

  it.each([...new Map(samples.map((sample) => [sample.type, sample])).values()])(
    'agrees with the schema on each member of $type that is missing, null or of another type',
    (sample) => {
      for (const path of pathsOf(sample.data)) {
        for (const value of [undefined, null, true, 7, -7, 7.5, 2 ** 53, 'seven', '7.1234567', [], {}]) {
          expectAgreement({ type: sample.type, data: withValue(sample.data, path, value) });
        }
      }
    },
  );

  it.each([null, 'text', 7, [], undefined])('agrees with the schema that %j is no record', (data) => {
    const line = { type: 'TransactionConfirmed', data: data as never } as const;
    expect(render(line)).toBeInstanceOf(RecordFault);
    expect(fits(line)).toBe(false);
  });
});
