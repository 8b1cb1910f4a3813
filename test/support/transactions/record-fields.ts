import { pathsOf, withValue } from './mutations.ts';
import { confirmedData } from './records.ts';

interface ChangedRecord {
  /** The one field in which it differs: `fuel.liters`. */
  readonly field: string;
  readonly data: Record<string, unknown>;
}

/** Values for the fields that are null in the sample. */
const FILLED: Readonly<Record<string, unknown>> = {
  correction_reference_id: 400,
  'vehicle.chassis_number': 'JAATFR54H',
  'images.odometer': 'photos/501/odometer.jpg',
};

/** Returns the sample record once for each of its fields, with another valid value in that field. */
export function recordsThatDifferInOneField(): ChangedRecord[] {
  const sample = confirmedData();
  return pathsOf(sample).flatMap((path) => {
    const field = path.join('.');
    const value = path.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], sample);
    if (value !== null && typeof value === 'object') return [];
    return [{ field, data: withValue(sample, path, value === null ? FILLED[field] : another(value)) }];
  });
}

function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  const text = String(value);
  if (/^\d{4}-/.test(text)) return text.replace('2026-09-03', '2026-09-04');
  return /^-?\d+\.\d+$/.test(text) ? `${text.slice(0, -1)}9` : `${text}0`;
}
