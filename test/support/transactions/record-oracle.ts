/**
 * Returns the text that the record of a valid event must have, written from the tables of the specification. It is slow
 * and independent of the rendering code. Images are null and the mobile number is shown.
 */
export function expectedRecord(type: string, data: Members, expiresAt: string): string {
  const isExternal = type === 'ExternalTransactionRecorded';
  const { fuel, vehicle, driver, fees, station } = data as unknown as Readonly<Record<string, Members>>;
  return object([
    ['id', whole(data.transaction_id)],
    ['status', isExternal ? '"EXTERNAL"' : '"CONFIRMED"'],
    ['created_at', time(data.created_at)],
    ['confirmed_at', time(data.confirmed_at)],
    ['correction_reference_id', whole(data.correction_reference_id)],
    ['corporate', namedRef(data.corporate)],
    ['corporate_group', namedRef(data.corporate_group)],
    [
      'fuel',
      object([
        ['type', namedRef(fuel?.type)],
        ['liters', amount(fuel?.liters, 2)],
        ['price_per_liter', amount(fuel?.price_per_liter, 2)],
        ['amount', amount(fuel?.amount, 2)],
      ]),
    ],
    ['odometer_reading', whole(data.odometer_reading)],
    ['distance_traveled', whole(data.distance_traveled)],
    ['fuel_consumption', amount(data.fuel_consumption, 2)],
    [
      'station',
      object([
        ['id', isExternal ? 'null' : whole(station?.id)],
        ['name', JSON.stringify(station?.name)],
        ['provider', isExternal ? 'null' : namedRef(station?.provider)],
        ['is_external', `${isExternal}`],
      ]),
    ],
    [
      'vehicle',
      object([
        ['id', whole(vehicle?.id)],
        ...['code', 'number_plate', 'chassis_number', 'brand', 'model'].map(
          (name): Member => [name, JSON.stringify(vehicle?.[name])],
        ),
        ['year', whole(vehicle?.year)],
        ['department', namedRef(vehicle?.department)],
      ]),
    ],
    [
      'driver',
      object([
        ['id', whole(driver?.id)],
        ['name', JSON.stringify(driver?.name)],
        ...(typeof driver?.mobile_number === 'string'
          ? [['mobile_number', JSON.stringify(driver.mobile_number)] as const]
          : []),
      ]),
    ],
    [
      'fees',
      object([
        ['total_fees', amount(fees?.total_fees, 2)],
        ['total_vat', amount(fees?.total_vat, 2)],
        ['total_amount', amount(fees?.total_amount, 6)],
      ]),
    ],
    [
      'images',
      object([
        ['pump', 'null'],
        ['odometer', 'null'],
        ['expires_at', JSON.stringify(expiresAt)],
      ]),
    ],
  ]);
}

type Members = Readonly<Record<string, unknown>>;
type Member = readonly [name: string, text: string];

function object(members: readonly Member[]): string {
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}

function whole(value: unknown): string {
  return value === null ? 'null' : BigInt(value as number).toString();
}

function amount(value: unknown, decimals: number): string {
  if (value === null) return 'null';
  const [integer = '', fraction = ''] = (value as string).replace('-', '').split('.');
  const isNegative = (value as string).startsWith('-') && /[1-9]/.test(value as string);
  const sign = isNegative ? '-' : '';
  return `${sign}${BigInt(integer)}.${fraction}${'0'.repeat(decimals - fraction.length)}`;
}

/** Parses a time with `Date`, which works once the fraction is cut to milliseconds and the offset has a colon. */
function time(value: unknown): string {
  if (value === null) return 'null';
  const text = (value as string).replace(/(\.\d{3})\d+/, '$1').replace(/([+-]\d{2}):?(\d{2})?$/, '$1:$2');
  return JSON.stringify(new Date(text.endsWith(':') ? `${text}00` : text).toISOString());
}

function namedRef(value: unknown): string {
  if (value === null) return 'null';
  const { id, name } = value as Members;
  return object([
    ['id', whole(id)],
    ['name', JSON.stringify(name)],
  ]);
}
