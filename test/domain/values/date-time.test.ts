import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateTime, parseDateTime, printedDateTime } from '../../../src/domain/values/date-time.ts';

const EARLIEST = '0000-01-01T00:00:00.000Z';
const LATEST = '9999-12-31T23:59:59.999Z';
const instants = fc.integer({ min: Date.parse(EARLIEST), max: Date.parse(LATEST) });
const digits = (value: number, width = 2): string => `${value}`.padStart(width, '0');

describe('a date-time', () => {
  it('is printed as it is read, whatever form it has', () => {
    const text = fc.oneof(
      instants.map((ms) => new Date(ms).toISOString()),
      fc.stringMatching(/^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\.[0-9]{3}[Zz:]$/),
      fc.constantFrom(
        '2026-09-03T08:15:30+03:00',
        '2026-02-29T00:00:00.000Z',
        '0099-01-01T00:00:00.000Z',
        'x',
      ),
    );
    fc.assert(
      fc.property(text, (given) => {
        const ms = parseDateTime(given);
        expect(printedDateTime(given)).toBe(ms === undefined ? undefined : formatDateTime(ms));
        const valid = !Number.isNaN(Date.parse(given)) && new Date(given).toISOString() === given;
        if (valid) expect(ms).toBe(Date.parse(given));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['2026-09-03T08:15:30Z', Date.UTC(2026, 8, 3, 8, 15, 30)],
    ['2026-09-03T08:15:30.1Z', Date.UTC(2026, 8, 3, 8, 15, 30, 100)],
    ['2026-09-03T08:15:30.123999999Z', Date.UTC(2026, 8, 3, 8, 15, 30, 123)],
    ['2026-09-03T08:15:30+03:00', Date.UTC(2026, 8, 3, 5, 15, 30)],
    ['2026-09-03T08:15:30-0530', Date.UTC(2026, 8, 3, 13, 45, 30)],
    ['2026-09-03T08:15:30+03', Date.UTC(2026, 8, 3, 5, 15, 30)],
    ['2026-12-31T23:30:00-01:00', Date.UTC(2027, 0, 1, 0, 30)],
    ['2026-09-03T08:15:30+14:00', Date.UTC(2026, 8, 2, 18, 15, 30)],
    ['2026-09-03T08:15:30-12:00', Date.UTC(2026, 8, 3, 20, 15, 30)],
    [EARLIEST, Date.parse(EARLIEST)],
    [LATEST, Date.parse(LATEST)],
  ])('is read with seconds and an offset: %s', (text, ms) => {
    expect(parseDateTime(text)).toBe(ms);
  });

  it.each([
    ['30 February', '2026-02-30T00:00:00Z'],
    ['29 February of a common year', '2026-02-29T00:00:00Z'],
    ['29 February of a century', '2100-02-29T00:00:00Z'],
    ['31 April', '2026-04-31T00:00:00Z'],
    ['day 0', '2026-04-00T00:00:00Z'],
    ['month 0', '2026-00-01T00:00:00Z'],
    ['month 13', '2026-13-01T00:00:00Z'],
    ['25:00', '2026-09-03T25:00:00Z'],
    ['24:00', '2026-09-03T24:00:00Z'],
    ['minute 60', '2026-09-03T08:60:00Z'],
    ['a leap second', '2026-12-31T23:59:60Z'],
    ['an offset of 24 hours', '2026-09-03T08:15:30+24:00'],
    ['an offset that no place has, in the east', '2026-09-03T08:15:30+14:01'],
    ['an offset that no place has, in the west', '2026-09-03T08:15:30-12:01'],
    ['an offset of 60 minutes', '2026-09-03T08:15:30+01:60'],
  ])('that does not exist is refused: %s', (_, text) => {
    expect(parseDateTime(text)).toBeUndefined();
  });

  it.each([
    ['no offset', '2026-09-03T08:15:30'],
    ['a bare date', '2026-09-03'],
    ['no seconds', '2026-09-03T08:15Z'],
    ['a space for the T', '2026-09-03 08:15:30Z'],
    ['small letters', '2026-09-03t08:15:30z'],
    ['an empty fraction', '2026-09-03T08:15:30.Z'],
    ['a comma', '2026-09-03T08:15:30,5Z'],
    ['a space for the plus', '2026-09-03T08:15:30 03:00'],
    ['white space around it', ' 2026-09-03T08:15:30Z'],
    ['a line end behind it', '2026-09-03T08:15:30Z\n'],
    ['a long year', '+012026-09-03T08:15:30Z'],
    ['other digits', '٢٠٢٦-09-03T08:15:30Z'],
    ['seconds since 1970', '1788423330'],
    ['nothing', ''],
  ])('of another form is refused: %s', (_, text) => {
    expect(parseDateTime(text)).toBeUndefined();
  });

  it.each([
    [2000, true],
    [2024, true],
    [2025, false],
    [1900, false],
    [2400, true],
    [4, true],
    [0, true],
  ])('of 29 February %i exists: %s', (year, exists) => {
    expect(parseDateTime(`${digits(year, 4)}-02-29T12:00:00Z`) !== undefined).toBe(exists);
  });

  it('outside the years 0 to 9999 in UTC is refused', () => {
    expect(parseDateTime('0000-01-01T00:00:00+00:01')).toBeUndefined();
    expect(parseDateTime('9999-12-31T23:59:59-00:01')).toBeUndefined();
  });

  it('that was printed is read back', () => {
    fc.assert(
      fc.property(instants, (ms) => {
        expect(parseDateTime(formatDateTime(ms))).toBe(ms);
      }),
    );
  });

  it('with any offset is the instant that Date makes of it', () => {
    const offsets = fc.tuple(fc.constantFrom('+', '-'), fc.nat(11), fc.nat(59));
    fc.assert(
      fc.property(instants, offsets, (ms, [sign, hours, minutes]) => {
        const text = formatDateTime(ms).replace('Z', `${sign}${digits(hours)}:${digits(minutes)}`);
        const expected = Date.parse(text);
        const inRange = expected >= Date.parse(EARLIEST) && expected <= Date.parse(LATEST);
        expect(parseDateTime(text)).toBe(inRange ? expected : undefined);
      }),
    );
  });

  it('exists exactly where Date keeps its parts unchanged', () => {
    const parts = fc.tuple(fc.nat(9_999), fc.nat(14), fc.nat(33), fc.nat(26), fc.nat(62), fc.nat(62));
    fc.assert(
      fc.property(parts, ([year, month, day, hour, minute, second]) => {
        const date = new Date(0);
        date.setUTCFullYear(year, month - 1, day);
        date.setUTCHours(hour, minute, second);
        const text = `${digits(year, 4)}-${digits(month)}-${digits(day)}T${digits(hour)}:${digits(minute)}:${digits(second)}`;
        // A date that overflows into the year 10000 or before the year 0 has a longer text, so it differs too.
        const exists = date.toISOString() === `${text}.000Z`;
        expect(parseDateTime(`${text}Z`)).toBe(exists ? date.getTime() : undefined);
      }),
      { numRuns: 2_000 },
    );
  });
});
