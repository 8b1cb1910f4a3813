const DATE_TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)$/;
export const DAY_MS = 86_400_000;

/** The earliest time that can be written: the start of the year 0000. */
export const EARLIEST_MS = -62_167_219_200_000;
/** The latest time that can be written: the last millisecond of the year 9999. */
export const LATEST_MS = 253_402_300_799_999;
const MINUTE_MS = 60_000;
/** The offsets that places on earth have, in minutes. */
const MOST_WESTERN = -12 * 60;
const MOST_EASTERN = 14 * 60;

/**
 * Parses an ISO 8601 date-time with seconds and `Z` or a numeric offset. Returns milliseconds since the epoch, without
 * further digits; `undefined` for anything else, including a date or time that does not exist (30 February, 25:00)
 * and an offset that no place has (beyond -12:00 and +14:00).
 */
export function parseDateTime(text: string): number | undefined {
  return isUsual(text) ? usualMs(text) : parseAny(text);
}

/** Formats a time as answers, events and logs have it: `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export function formatDateTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats a time; `null` if there is none. */
export function dateTimeOrNull(ms: number | null | undefined): string | null {
  return ms == null ? null : formatDateTime(ms);
}

/** Parses and formats a date-time, which nearly always gives the text itself; `undefined` if it is not a date-time. */
export function printedDateTime(text: string): string | undefined {
  if (isUsual(text)) return text;
  const ms = parseAny(text);
  return ms === undefined ? undefined : formatDateTime(ms);
}

/**
 * True if the text, like nearly all date-times, has the form of `formatDateTime` and a day that every month has. This
 * takes a tenth of the time of the regular expression, which matters when a million events are read.
 */
function isUsual(text: string): boolean {
  if (text.length !== 24 || text[4] !== '-' || text[7] !== '-' || text[10] !== 'T') return false;
  if (text[13] !== ':' || text[16] !== ':' || text[19] !== '.' || text[23] !== 'Z') return false;
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999. NaN fails every comparison.
  const isDay = yearOf(text) >= 100 && month >= 1 && month <= 12 && day >= 1 && day <= 28;
  const isTime = twoDigits(text, 11) <= 23 && twoDigits(text, 14) <= 59 && twoDigits(text, 17) <= 59;
  return isDay && isTime && millisecondsOf(text) >= 0;
}

/** The milliseconds of a text for which `isUsual` is true. */
function usualMs(text: string): number {
  const month = twoDigits(text, 5) - 1;
  const day = twoDigits(text, 8);
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const second = twoDigits(text, 17);
  return Date.UTC(yearOf(text), month, day, hour, minute, second, millisecondsOf(text));
}

function yearOf(text: string): number {
  return twoDigits(text, 0) * 100 + twoDigits(text, 2);
}

function millisecondsOf(text: string): number {
  return twoDigits(text, 20) * 10 + digit(text, 22);
}

function twoDigits(text: string, at: number): number {
  return digit(text, at) * 10 + digit(text, at + 1);
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

function parseAny(text: string): number | undefined {
  const [, local, fraction = '', sign, hours = '0', minutes = '0'] = DATE_TIME.exec(text) ?? [];
  const offset = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
  if (local === undefined || Number(minutes) > 59) return undefined;
  if (offset < MOST_WESTERN || offset > MOST_EASTERN) return undefined;
  const localMs = Date.parse(`${local}.${fraction.slice(0, 3).padEnd(3, '0')}Z`);
  // Date.parse turns a date that does not exist into another date or NaN.
  if (Number.isNaN(localMs) || !formatDateTime(localMs).startsWith(local)) return undefined;
  const instant = localMs - offset * MINUTE_MS;
  return instant < EARLIEST_MS || instant > LATEST_MS ? undefined : instant;
}
