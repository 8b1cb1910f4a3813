import { printableLine } from '../../base/printable.ts';

/** A spreadsheet runs a text that begins like this as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/**
 * Returns a record of CSV (RFC 4180) with its line end. Objects and lists are JSON, missing values are empty. An apostrophe
 * before a text that a spreadsheet would take for a formula makes it a text again.
 */
export function csvRecord(values: readonly unknown[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

function field(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = printableLine(typeof value === 'object' ? JSON.stringify(value) : String(value));
  const isFormula = typeof value === 'string' && FORMULA.test(value) && !DECIMAL.test(value);
  const safe = isFormula ? `'${text}` : text;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
