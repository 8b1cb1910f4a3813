import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordText } from '../../projections/record.ts';
import { pageBody } from '../../src/pull/transactions.ts';
import { createPresigner } from '../../src/records/presign.ts';
import { sampleRecord } from '../support/transactions/records.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 300 }).map((value) => JSON.stringify(value));
const objectKey = fc.option(fc.string({ unit: 'binary', maxLength: 1_000 }));
const record = fc
  .record({
    driverName: text,
    mobileNumber: fc.option(text),
    fees: text.map((value) => `{"total_fees":${value}}`),
    pump: objectKey,
    odometer: objectKey,
  })
  .map((sample) => sampleRecord({ id: 1, ...sample }));
const presigner = createPresigner({
  endpoint: 'https://photos.example',
  region: 'eu-central-1',
  bucket: 'bücket',
  accessKeyId: 'KEY',
  secretAccessKey: 'secret',
});

test('a page is its records’ text, whatever characters and lengths they have', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 8 }), fc.boolean(), (records, mobileNumber) => {
      const { presign } = presigner.at(1_789_200_000_000, 3_600);
      const terms = { mobileNumber, expiresAt: '2026-09-12T09:00:00.000Z' };
      const rows = records.map((one, id) => ({ record: one, id, createdAtMs: 0 }));
      const expected = records.map((one) => recordText(one, { ...terms, presign })).join(',');
      expect(pageBody(rows, { ...terms, presign }, '{"limit":8}').toString()).toBe(
        `{"data":[${expected}],"pagination":{"limit":8}}`,
      );
    }),
  );
});
