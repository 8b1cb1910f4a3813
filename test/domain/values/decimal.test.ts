import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printDecimal } from '../../../src/domain/values/decimal.ts';

describe('a decimal', () => {
  it.each([
    ['45.2', 2, '45.20'],
    ['45', 2, '45.00'],
    ['45.20', 2, '45.20'],
    ['-0.5', 2, '-0.50'],
    ['0', 6, '0.000000'],
    ['100.27', 6, '100.270000'],
    ['7', 0, '7'],
    ['-0.01', 2, '-0.01'],
    ['-10', 2, '-10.00'],
  ])('%s is padded to %i decimals: %s', (text, decimals, printed) => {
    expect(printDecimal(text, decimals)).toBe(printed);
  });

  it('that is a negative zero has no sign, however it is written', () => {
    for (const zero of ['-0', '-0.0', '-0.00']) expect([zero, printDecimal(zero, 2)]).toEqual([zero, '0.00']);
    expect(printDecimal('-0.000000', 6)).toBe('0.000000');
    expect(printDecimal('-0', 0)).toBe('0');
    expect(printDecimal('-0.000', 2)).toBeUndefined();
    expect(printDecimal('-', 2)).toBeUndefined();
    expect(printDecimal('-.0', 2)).toBeUndefined();
  });

  it('with more decimals is refused, never rounded, even where they are zeros', () => {
    expect(printDecimal('45.201', 2)).toBeUndefined();
    expect(printDecimal('45.200', 2)).toBeUndefined();
  });

  it.each([
    '',
    ' ',
    '1 ',
    ' 1',
    '1\n',
    '+1',
    '--1',
    '.5',
    '5.',
    '01',
    '-01.5',
    '1e3',
    '1,5',
    '0x1',
    '١',
    'NaN',
    '1.2.3',
  ])('is nothing else than plain digits: %j', (text) => {
    expect(printDecimal(text, 6)).toBeUndefined();
  });

  it('has at most 40 characters', () => {
    expect(printDecimal('9'.repeat(40), 0)).toBe('9'.repeat(40));
    expect(printDecimal('9'.repeat(41), 0)).toBeUndefined();
  });

  it('keeps its exact value, whatever its size', () => {
    const digits = fc.stringMatching(/^[0-9]{0,6}$/);
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), digits, (whole, fraction) => {
        const text = fraction === '' ? `${whole}` : `${whole}.${fraction}`;
        const printed = printDecimal(text, 6);
        expect(printed).toMatch(/^-?(0|[1-9]\d*)\.\d{6}$/);
        expect(BigInt(printed?.replace('.', '') ?? '')).toBe(BigInt(`${whole}${fraction.padEnd(6, '0')}`));
      }),
    );
  });

  it('that was printed is printed the same again', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^-?[0-9]{1,9}(\.[0-9]{1,8})?$/), (text) => {
        const printed = printDecimal(text, 6);
        if (printed !== undefined) expect(printDecimal(printed, 6)).toBe(printed);
      }),
    );
  });

  it('is JSON once it is printed', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[-+.0-9e]{1,8}$/), (text) => {
        const printed = printDecimal(text, 2);
        if (printed !== undefined) expect(JSON.parse(printed)).toBeTypeOf('number');
      }),
    );
  });
});
