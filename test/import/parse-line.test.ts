import { describe, expect, test } from 'vitest';
import { parseLine } from '../../src/import/parse-line.ts';
import { cancelled, confirmed, external, voided } from '../support/e2e-samples.ts';

const lineOf = (line: unknown) => parseLine(JSON.stringify(line));
const refused = (reason: string | RegExp) => ({ ok: false, reason: expect.stringMatching(reason) });

describe('a line of an import', () => {
  test.each([confirmed(501), external(501), voided(501), cancelled(501)])(
    'names its event and the stream that it belongs to: $type',
    (event) => {
      expect(lineOf({ ...event, more: 1 })).toEqual({ ok: true, stream: 'transaction-501', event });
    },
  );

  test.each(['', 'not json', '{"type":', 'undefined'])('is JSON: %j', (text) => {
    expect(parseLine(text)).toEqual(refused(/^is not JSON: ./));
  });

  test.each(['null', '[]', '[{}]', '"text"', '7', 'true'])('is an object: %s', (text) => {
    expect(parseLine(text)).toEqual(refused(/^is not an object with "type" and "data"$/));
  });

  test.each([
    [undefined, '(none)'],
    [null, 'null'],
    [7, '7'],
    ['', '""'],
    ['TransactionGuessed', '"TransactionGuessed"'],
    ['AccountOpened', '"AccountOpened"'],
    ['toString', '"toString"'],
  ])('has a type that is known: %s is not', (type, shown) => {
    expect(lineOf({ type, data: confirmed(1).data })).toEqual({
      ok: false,
      reason: `unknown type ${shown}: must be one of TransactionConfirmed, ExternalTransactionRecorded, TransactionVoided, TransactionCancelled`,
    });
  });

  test('that is refused is told every fault at once', () => {
    const { data } = confirmed(1, { account_id: -1, created_at: 'yesterday', driver: { id: 77 } });
    const { reason } = lineOf({ type: 'TransactionConfirmed', data }) as { reason: string };
    expect(reason.split('; ')).toEqual([
      expect.stringMatching(/^account_id: /),
      expect.stringMatching(/^created_at: /),
      expect.stringMatching(/^driver\.name: /),
    ]);
  });

  test('without its data is refused', () => {
    expect(lineOf({ type: 'TransactionVoided' })).toEqual(refused(/^data: /));
  });
});
