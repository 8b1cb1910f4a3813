import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonText } from '../../../src/event-store/new-event.ts';
import { parseLine } from '../../../src/operator/import/parse-line.ts';
import { nestedText } from '../../support/transactions/deep-values.ts';
import { cancelled, confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';

const parse = (text: string) => parseLine({ text, bytes: Buffer.from(text) });
const lineOf = (line: unknown) => parse(JSON.stringify(line));
const refused = (reason: string | RegExp) => ({ ok: false, reason: expect.stringMatching(reason) });

/** Returns the data that is recorded from a line, and whether it is a part of the line's own bytes. */
function recorded(text: string) {
  const bytes = Buffer.alloc(Buffer.byteLength(text), text); // not in a buffer that others share
  const line = parseLine({ text, bytes });
  if (!line.ok) throw new Error(line.reason);
  const { data } = line.content;
  return { text: data.text, isPart: data.bytes.buffer === bytes.buffer };
}

describe('the data of a line of an import', () => {
  const { type, data } = confirmed(501, { driver: { id: 77, name: 'Zoë 😀 中', mobile_number: null } });
  const json = JSON.stringify(data);
  const line = `{"type":"${type}","data":${json}}`;

  test('is recorded as the bytes that it has, where these are what would be written of it', () => {
    expect(recorded(line)).toEqual({ text: json, isPart: true });
    expect(recorded(JSON.stringify(voided(7)))).toEqual({
      text: JSON.stringify(voided(7).data),
      isPart: true,
    });
  });

  test.each([
    ['white space', line.replace('"transaction_id":501', ' "transaction_id":501')],
    ['white space after it', line.replace(/\}$/, ' }')],
    ['a member twice', line.replace('"transaction_id":501', '"transaction_id":502,"transaction_id":501')],
    ['another spelling of a number', line.replace('"transaction_id":501', '"transaction_id":5.01e2')],
    ['another spelling of a text', line.replace('Zoë', 'Zo\\u00eb')],
    ['members before it', line.replace('{"type"', '{"é":1,"type"')],
    ['members after it', line.replace(/\}$/, ',"more":1}')],
    ['the data first', `{"data":${json},"type":"${type}"}`],
    ['the data twice', line.replace(/\}$/, `,"data":${json}}`)],
  ])('is recorded as it would be written, not as the line has it, with %s', (_, text) => {
    expect(recorded(text)).toEqual({ text: json, isPart: false });
  });

  test('is what would be written of it, however its values are spelled', () => {
    const spelled = fc.constantFrom(
      '1.0',
      '-0',
      '1e3',
      '1E21',
      '12345678901234567890',
      '"\\u0041"',
      '"\\/"',
      '{"b":1,"2":1}',
    );
    fc.assert(
      fc.property(fc.oneof(spelled, fc.json()), fc.constantFrom('', ' ', '\t'), (value, space) => {
        const text = line.replace('{"transaction_id"', () => `{"x":${space}${value},"transaction_id"`);
        expect(recorded(text).text).toBe(JSON.stringify(JSON.parse(text).data));
      }),
    );
  });
});

describe('a line of an import', () => {
  test.each([confirmed(501), external(501), voided(501), cancelled(501)])(
    'names its event, the stream that it belongs to and the account: %j',
    (event) => {
      const { type, data } = event;
      const content = { type, data: new JsonText(Buffer.from(JSON.stringify(data))), accountId: 7 };
      expect(lineOf({ ...event, more: 1 })).toEqual({ ok: true, stream: 'transaction-501', content });
    },
  );

  test.each([
    ['../other/secret.jpg', 'no segment . or ..'],
    ['photos/./a.jpg', 'no segment . or ..'],
    ['photos/..', 'no segment . or ..'],
    ['photos/\ud800.jpg', 'half of a surrogate pair'],
  ])('names an image by a key that every client takes as it is: %j is refused', (pump, reason) => {
    expect(lineOf(confirmed(501, { images: { pump, odometer: null } }))).toEqual(refused(reason));
    expect(lineOf(confirmed(501, { images: { pump: 'photos/..a/.b', odometer: null } }))).toMatchObject({
      ok: true,
    });
  });

  test('has no half of a surrogate pair in a text', () => {
    const driver = { id: 77, name: 'Sam \udc00', mobile_number: null };
    expect(lineOf(confirmed(501, { driver }))).toEqual(refused('driver.name.*half of a surrogate pair'));
  });

  test.each(['', 'not json', '{"type":', 'undefined'])('is JSON: %j', (text) => {
    expect(parse(text)).toEqual(refused(/^is not JSON: ./));
  });

  test.each(['null', '[]', '[{}]', '"text"', '7', 'true'])('is an object: %s', (text) => {
    expect(parse(text)).toEqual(refused(/^is not an object with "type" and "data"$/));
  });

  test.each([
    [undefined, '(none)'],
    [null, 'null'],
    [7, '7'],
    ['', '""'],
    ['TransactionGuessed', '"TransactionGuessed"'],
    ['AccountOpened', '"AccountOpened"'],
    ['toString', '"toString"'],
    [['TransactionConfirmed'], '["TransactionConfirmed"]'],
  ])('has a type that is known: %s is not', (type, shown) => {
    expect(lineOf({ type, data: confirmed(1).data })).toEqual({
      ok: false,
      reason: `unknown type ${shown}: must be one of TransactionConfirmed, ExternalTransactionRecorded, TransactionVoided, TransactionCancelled`,
    });
  });

  test('that is refused is reported with every fault at once', () => {
    const { data } = confirmed(1, { account_id: -1, created_at: 'yesterday', driver: { id: 77 } });
    const { reason } = lineOf({ type: 'TransactionConfirmed', data }) as { reason: string };
    expect(reason.split('; ')).toEqual([
      expect.stringMatching(/^account_id: /),
      expect.stringMatching(/^created_at: /),
      expect.stringMatching(/^driver\.name: /),
    ]);
  });

  test('nests at most 64 levels in its data, and as deep beside it', () => {
    const { type, data } = confirmed(501);
    const [inside, beside] = [
      (levels: number) =>
        JSON.stringify({ type, data }).replace(
          '{"transaction_id"',
          `{"x":${nestedText(levels)},"transaction_id"`,
        ),
      (levels: number) =>
        JSON.stringify({ type, data }).replace('{"type"', `{"x":${nestedText(levels)},"type"`),
    ];
    expect(parse(inside(63))).toMatchObject({ ok: true, stream: 'transaction-501' });
    expect(parse(beside(64))).toMatchObject({ ok: true });
    const tooDeep = refused(/^nests deeper than the 64 levels that an event's data may have$/);
    for (const text of [inside(64), beside(65), inside(30_000), beside(30_000), nestedText(30_000)]) {
      expect(parse(text)).toEqual(text.startsWith('[') ? refused(/^is not an object/) : tooDeep);
    }
    expect(parse(`{"type":${nestedText(30_000)}}`)).toEqual(tooDeep);
  });

  test('that is refused gets a short reason, whatever it contains', () => {
    const { data } = confirmed(501);
    const long = 'x'.repeat(60_000);
    for (const line of [
      { type: long },
      { type: 'TransactionConfirmed', data: { ...data, station: long } },
      { type: 'TransactionConfirmed', data: { ...data, station: [long] } },
    ]) {
      const { reason } = lineOf(line) as { reason: string };
      expect(reason.length).toBeLessThanOrEqual(1_000);
    }
    expect(lineOf({ type: 'TransactionConfirmed', data: { ...data, station: [{ toString: 1 }] } })).toEqual(
      refused(/^data: does not fit/),
    );
    expect(lineOf(confirmed(501, { driver: { id: 77, name: long } }))).toEqual(
      refused(/^driver\.name: must have at most 1000 characters$/),
    );
  });

  test('without its data is refused', () => {
    expect(lineOf({ type: 'TransactionVoided' })).toEqual(refused(/^data: /));
  });
});
