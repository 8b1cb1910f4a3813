import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { amountsOf, negated, printHundredths } from './amounts.ts';
import { type SampleVehicle, sampleFleet } from './fleet.ts';
import { EXTERNAL_STATIONS, STATIONS, WITHDRAWAL_REASONS } from './names.ts';
import { Random } from './random.ts';

export interface GeneratorOptions {
  /** The same options give the same events. */
  readonly seed: number;
  /** Transactions to record, refunds included. Voids and cancellations come on top. */
  readonly count: number;
  /** Above 0. */
  readonly days: number;
  readonly endMs: number;
  /** At least one. */
  readonly accountIds: readonly number[];
}

type Confirmed = Extract<TransactionEvent, { type: 'TransactionConfirmed' }>;
type External = Extract<TransactionEvent, { type: 'ExternalTransactionRecorded' }>;
type Recorded = Confirmed | External;

const FIRST_ID = 100_001;
const EXTERNAL_SHARE = 0.08;
const VOIDED_SHARE = 0.02;
const CANCELLED_SHARE = 0.01;
const REFUNDED_SHARE = 0.022; // of the confirmed ones, which makes 2 % of all
const ODOMETER_SHARE = 0.7;
const PUMP_PHOTO_SHARE = 0.9;
const ODOMETER_PHOTO_SHARE = 0.6;

/**
 * Sample transactions of several accounts, spread evenly over the days before `endMs`, in the order in which
 * a core system would record them; ids ascend. Nothing is recorded after `endMs`. Events are generated one at a time, and
 * only a few per cent of them are kept in memory.
 */
export function* generateTransactions(
  options: GeneratorOptions,
): Generator<TransactionEvent, void, undefined> {
  const random = new Random(options.seed);
  const spanMs = options.days * DAY_MS;
  const startMs = options.endMs - spanMs;
  const fleet = sampleFleet(random, options);
  const withdrawals = new Agenda<TransactionEvent>();
  const refunds = new Agenda<Confirmed>();
  const longestWaitMs = Math.min(3 * DAY_MS, spanMs / 10);

  for (let n = 0; n < options.count; n++) {
    const recordedMs = startMs + Math.floor(((n + random.next()) * spanMs) / options.count);
    yield* withdrawals.due(recordedMs);
    const id = FIRST_ID + n;
    const original = refunds.takeOne(recordedMs);
    if (original !== undefined) {
      yield refundOf(original, id, recordedMs);
      continue;
    }
    const fill = fillUp(random, pickVehicle(random, fleet), { id, startMs, recordedMs });
    yield fill;
    const dueMs = recordedMs + 60_000 + Math.floor(random.next() * random.next() * longestWaitMs);
    const draw = random.next();
    if (draw < VOIDED_SHARE) withdrawals.add(dueMs, voided(random, fill, dueMs));
    else if (draw < VOIDED_SHARE + CANCELLED_SHARE) withdrawals.add(dueMs, cancelled(random, fill, dueMs));
    else if (fill.type === 'TransactionConfirmed' && random.chance(REFUNDED_SHARE)) refunds.add(dueMs, fill);
  }
  yield* withdrawals.due(options.endMs);
}

interface Moment {
  readonly id: number;
  readonly startMs: number;
  readonly recordedMs: number;
}

function fillUp(random: Random, car: SampleVehicle, moment: Moment): Recorded {
  const isExternal = random.chance(EXTERNAL_SHARE);
  const createdMs = createdAt(random, car, moment);
  const kilometres = random.between([120, Math.floor((car.tankLiters * 9_000) / car.consumption)]);
  const liters = Math.round((kilometres * car.consumption) / 100); // hundredths
  const price = car.fuel.price + random.between([-6, 9]);
  const trip = driveOn(random, car, { kilometres, liters });
  const { amount, ...fees } = amountsOf({ liters, price, isExternal, agreement: car.fees });
  const common = {
    transaction_id: moment.id,
    account_id: car.accountId,
    created_at: formatDateTime(createdMs),
    correction_reference_id: null,
    corporate: car.corporate,
    corporate_group: car.corporateGroup,
    fuel: {
      type: { id: car.fuel.id, name: car.fuel.name },
      liters: printHundredths(liters),
      price_per_liter: printHundredths(price),
      amount,
    },
    ...trip,
    vehicle: car.vehicle,
    driver: car.driver,
    fees,
    images: {
      pump: random.chance(PUMP_PHOTO_SHARE) ? `photos/${moment.id}/pump.jpg` : null,
      odometer: random.chance(ODOMETER_PHOTO_SHARE) ? `photos/${moment.id}/odometer.jpg` : null,
    },
  };
  if (isExternal) {
    const station = { name: random.pick(EXTERNAL_STATIONS) };
    return { type: 'ExternalTransactionRecorded', data: { ...common, confirmed_at: null, station } };
  }
  const confirmed_at = formatDateTime(moment.recordedMs);
  return { type: 'TransactionConfirmed', data: { ...common, confirmed_at, station: random.pick(STATIONS) } };
}

/** Before it is recorded, and after the vehicle's previous fill. */
function createdAt(random: Random, car: SampleVehicle, { startMs, recordedMs }: Moment): number {
  const waitMs = random.between([4_000, 90_000]);
  const createdMs = Math.min(recordedMs, Math.max(recordedMs - waitMs, startMs, car.lastCreatedMs + 1));
  car.lastCreatedMs = createdMs;
  return createdMs;
}

/** Moves the vehicle to this fill; distance and consumption are known only between two readings in a row. */
function driveOn(
  random: Random,
  car: SampleVehicle,
  since: { readonly kilometres: number; readonly liters: number },
): Pick<Recorded['data'], 'odometer_reading' | 'distance_traveled' | 'fuel_consumption'> {
  const before = car.lastReading;
  car.odometer += since.kilometres;
  car.lastReading = random.chance(ODOMETER_SHARE) ? car.odometer : null;
  if (before === null || car.lastReading === null) {
    return { odometer_reading: car.lastReading, distance_traveled: null, fuel_consumption: null };
  }
  return {
    odometer_reading: car.lastReading,
    distance_traveled: since.kilometres,
    fuel_consumption: printHundredths(Math.round((since.liters * 100) / since.kilometres)),
  };
}

function refundOf(original: Confirmed, id: number, recordedMs: number): Confirmed {
  const { fuel, fees } = original.data;
  return {
    type: 'TransactionConfirmed',
    data: {
      ...original.data,
      transaction_id: id,
      created_at: formatDateTime(recordedMs),
      confirmed_at: formatDateTime(recordedMs),
      correction_reference_id: original.data.transaction_id,
      fuel: { ...fuel, liters: negated(fuel.liters), amount: negated(fuel.amount) },
      odometer_reading: null,
      distance_traveled: null,
      fuel_consumption: null,
      fees: {
        total_fees: negated(fees.total_fees),
        total_vat: negated(fees.total_vat),
        total_amount: negated(fees.total_amount),
      },
      images: { pump: null, odometer: null },
    },
  };
}

function voided(random: Random, { data }: Recorded, dueMs: number): TransactionEvent {
  return {
    type: 'TransactionVoided',
    data: { ...withdrawal(random, data), voided_at: formatDateTime(dueMs) },
  };
}

function cancelled(random: Random, { data }: Recorded, dueMs: number): TransactionEvent {
  return {
    type: 'TransactionCancelled',
    data: { ...withdrawal(random, data), cancelled_at: formatDateTime(dueMs) },
  };
}

function withdrawal(
  random: Random,
  { transaction_id, account_id }: Recorded['data'],
): { transaction_id: number; account_id: number; reason: string | null } {
  return { transaction_id, account_id, reason: random.chance(0.8) ? random.pick(WITHDRAWAL_REASONS) : null };
}

function pickVehicle(random: Random, fleet: readonly SampleVehicle[]): SampleVehicle {
  const car = fleet[random.between([0, fleet.length - 1])];
  if (car === undefined) throw new RangeError('at least one account is needed');
  return car;
}

/** Future events, the next one last. */
class Agenda<T> {
  readonly #items: { readonly dueMs: number; readonly what: T }[] = [];

  add(dueMs: number, what: T): void {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#items[middle]?.dueMs ?? 0) > dueMs) low = middle + 1;
      else high = middle;
    }
    this.#items.splice(low, 0, { dueMs, what });
  }

  takeOne(untilMs: number): T | undefined {
    const next = this.#items.at(-1);
    if (next === undefined || next.dueMs > untilMs) return undefined;
    this.#items.pop();
    return next.what;
  }

  *due(untilMs: number): Generator<T, void, undefined> {
    for (let what = this.takeOne(untilMs); what !== undefined; what = this.takeOne(untilMs)) yield what;
  }
}
