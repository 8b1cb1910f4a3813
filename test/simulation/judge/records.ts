import type { ModelTransaction } from './model.ts';

type Json = Readonly<Record<string, unknown>>;

/** Compares a record with its event. Returns the first contradiction. */
export function judgeRecord(
  record: Json,
  transaction: ModelTransaction,
  showsNumber: boolean,
): string | undefined {
  const { data, status, id } = transaction;
  if (record.id !== id || record.status !== status) return `is ${record.id} ${record.status}`;
  if (Date.parse(String(record.created_at)) !== transaction.createdAtMs)
    return `was created at ${record.created_at}`;
  for (const part of ['corporate', 'corporate_group', 'odometer_reading', 'distance_traveled'] as const)
    if (JSON.stringify(record[part]) !== JSON.stringify(data[part]))
      return `has ${part} ${JSON.stringify(record[part])}`;
  for (const [part, member] of [
    ['fuel', 'amount'],
    ['fuel', 'liters'],
    ['fees', 'total_amount'],
    ['vehicle', 'number_plate'],
    ['driver', 'name'],
  ] as const) {
    const [shown, given] = [memberOf(record, part, member), memberOf(data, part, member)];
    if (Number.isNaN(Number(given)) ? shown !== given : Number(shown) !== Number(given))
      return `has ${part}.${member} ${shown}`;
  }
  const number = memberOf(record, 'driver', 'mobile_number');
  if ((number !== undefined) !== (showsNumber && memberOf(data, 'driver', 'mobile_number') !== null))
    return `shows the number ${number}`;
  return undefined;
}

function memberOf(of: Json, part: string, member: string): unknown {
  return (of[part] as Json | undefined)?.[member];
}
