import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RenderedRecord } from '../../projections/record.ts';
import { pageBody } from '../../src/pull/transactions.ts';
import { createPresigner } from '../../src/records/presign.ts';
import { recordText } from '../../src/records/record.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 300 }).map((value) => JSON.stringify(value));
const objectKey = fc.option(fc.string({ unit: 'binary', maxLength: 1_000 }));
const record: fc.Arbitrary<RenderedRecord> = fc.record({
  head: text.map((name) => `{"id":1,"driver":{"id":1,"name":${name}`),
  mobileNumber: fc.option(text),
  fees: text,
  pump: objectKey,
  odometer: objectKey,
});
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
      const rows = records.map((row, id) => ({ ...row, id, createdAtMs: 0 }));
      const expected = records.map((one) => recordText(one, { ...terms, presign })).join(',');
      expect(pageBody(rows, { ...terms, presign }, '{"limit":8}').toString()).toBe(
        `{"data":[${expected}],"pagination":{"limit":8}}`,
      );
    }),
  );
});
