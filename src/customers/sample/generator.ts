import { FuelError } from '../../base/errors.ts';
import type { RecordingType, TransactionEvent } from '../../domain/transaction-events.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { type SampleVehicle, sampleFleet } from './fleet.ts';
import names from './names.json' with { type: 'json' };
import { Random } from './random.ts';

export interface GeneratorOptions {
  /** The same options give the same events. */
  readonly seed: number;
  /** The number of transactions, including refunds. Voids and cancellations are extra. */
  readonly count: number;
  /** Above 0. */
  readonly days: number;
  readonly endMs: number;
  /** At least one. */
  readonly accountIds: readonly number[];
}

export type Recorded = Extract<TransactionEvent, { type: RecordingType }>;

export const FIRST_ID = 100_001;
export const RECORDED_AFTER_MS = 30_000; // after its creation
/** A fill is withdrawn or refunded this many fills later. */
const LATER = 50;
const EXTERNAL_SHARE = 0.08;
const WITHDRAWN_SHARE = { voided: 0.02, cancelled: 0.01 };
const REFUNDED_SHARE = 0.022; // of confirmed transactions, which is 2 % of all
const KNOWN_SHARE = { odometer: 0.7, pumpPhoto: 0.9, odometerPhoto: 0.6 };
const FEE_SHARE = 125; // in ten-thousandths of the fuel amount; stations outside the network have none
const VAT_SHARE = 0.15; // of the fees

/**
 * Generates transactions of several accounts, spread evenly over the days before `endMs`, in the order in which a core system
 * would record them, with ascending ids and times of creation. Nothing is recorded after `endMs`. Only the last fills are kept
 * in memory.
 */
export function* generateTransactions(
  options: GeneratorOptions,
): Generator<TransactionEvent, void, undefined> {
  const random = new Random(options.seed);
  const fleet = sampleFleet(random, options);
  const spanMs = options.days * DAY_MS;
  const stepMs = (spanMs - RECORDED_AFTER_MS) / options.count;
  const recent: Recorded[] = [];
  for (let n = 0; n < options.count; n++) {
    const createdMs = options.endMs - spanMs + Math.floor((n + random.next()) * stepMs);
    const moment = { id: FIRST_ID + n, createdMs };
    const earlier = recent.length === LATER ? recent.shift() : undefined;
    const fate = random.next();
    if (earlier !== undefined && fate < WITHDRAWN_SHARE.voided + WITHDRAWN_SHARE.cancelled) {
      yield withdrawn(random, earlier, {
        isVoided: fate < WITHDRAWN_SHARE.voided,
        atMs: createdMs + RECORDED_AFTER_MS,
      });
    } else if (earlier?.type === 'TransactionConfirmed' && random.chance(REFUNDED_SHARE)) {
      yield refundOf(earlier, moment);
      continue;
    }
    const fill = fillUp(random, random.pick(fleet), moment);
    recent.push(fill);
    yield fill;
  }
}

interface Moment {
  readonly id: number;
  readonly createdMs: number;
}

/** Litres, prices and amounts are counted in whole hundredths, so that no fraction is used. */
function fillUp(random: Random, car: SampleVehicle, { id, createdMs }: Moment): Recorded {
  const isExternal = random.chance(EXTERNAL_SHARE);
  const { consumption, tankLiters } = car.model;
  const kilometres = random.between([120, Math.floor((tankLiters * 9_000) / consumption)]);
  const liters = Math.round((kilometres * consumption) / 100);
  const price = car.fuel.price + random.between([-6, 9]);
  const amount = Math.round((liters * price) / 100);
  const common = {
    transaction_id: id,
    ...car.facts,
    created_at: formatDateTime(createdMs),
    correction_reference_id: null,
    fuel: {
      type: { id: car.fuel.id, name: car.fuel.name },
      liters: printHundredths(liters),
      price_per_liter: printHundredths(price),
      amount: printHundredths(amount),
    },
    ...driveOn(random, car, { kilometres, liters }),
    fees: feesOf(amount, isExternal),
    images: {
      pump: random.chance(KNOWN_SHARE.pumpPhoto) ? `photos/${id}/pump.jpg` : null,
      odometer: random.chance(KNOWN_SHARE.odometerPhoto) ? `photos/${id}/odometer.jpg` : null,
    },
  };
  if (isExternal) {
    const station = { name: random.pick(names.external_stations) };
    return { type: 'ExternalTransactionRecorded', data: { ...common, confirmed_at: null, station } };
  }
  const confirmed_at = formatDateTime(createdMs + RECORDED_AFTER_MS);
  return {
    type: 'TransactionConfirmed',
    data: { ...common, confirmed_at, station: random.pick(names.stations) },
  };
}

/** Moves the vehicle to this fill. Distance and consumption are known only after two readings in a row. */
function driveOn(
  random: Random,
  car: SampleVehicle,
  since: { readonly kilometres: number; readonly liters: number },
) {
  car.odometer += since.kilometres;
  const odometer_reading = random.chance(KNOWN_SHARE.odometer) ? car.odometer : null;
  const isKnown = car.lastReading !== null && odometer_reading !== null;
  car.lastReading = odometer_reading;
  return {
    odometer_reading,
    distance_traveled: isKnown ? since.kilometres : null,
    fuel_consumption: isKnown ? printHundredths(Math.round((since.liters * 100) / since.kilometres)) : null,
  };
}

/** The total includes fees and VAT before they are rounded, as in a core system, and has 2 to 6 decimals. */
function feesOf(amount: number, isExternal: boolean): Recorded['data']['fees'] {
  const fees = isExternal ? 0 : amount * FEE_SHARE; // millionths, as are VAT and the total
  const vat = Math.round(fees * VAT_SHARE);
  const total = amount * 10_000 + fees + vat;
  return {
    total_fees: printHundredths(Math.round(fees / 10_000)),
    total_vat: printHundredths(Math.round(vat / 10_000)),
    total_amount: (total / 1_000_000).toFixed(6).replace(/0{1,4}$/, ''),
  };
}

function printHundredths(hundredths: number): string {
  return (hundredths / 100).toFixed(2);
}

/** The same fill at another moment, without photos. Nobody read the odometer. */
function repeated<R extends Recorded>(original: R, { id, createdMs }: Moment): R {
  return {
    ...original,
    data: {
      ...original.data,
      transaction_id: id,
      created_at: formatDateTime(createdMs),
      confirmed_at: original.data.confirmed_at && formatDateTime(createdMs + RECORDED_AFTER_MS),
      odometer_reading: null,
      distance_traveled: null,
      fuel_consumption: null,
      images: { pump: null, odometer: null },
    },
  };
}

function refundOf<R extends Recorded>(original: R, moment: Moment): R {
  const { fuel, fees, transaction_id } = original.data;
  const negative = {
    ...original.data,
    correction_reference_id: transaction_id,
    fuel: { ...fuel, liters: `-${fuel.liters}`, amount: `-${fuel.amount}` },
    fees: {
      total_fees: `-${fees.total_fees}`,
      total_vat: `-${fees.total_vat}`,
      total_amount: `-${fees.total_amount}`,
    },
  };
  return repeated({ ...original, data: negative }, moment);
}

export const NEW_KINDS = ['confirmed', 'external', 'refund'] as const;
type NewKind = (typeof NEW_KINDS)[number];

/**
 * Makes a further transaction from one that is shown: a fill like it, or its refund if it has none. Throws `REFUSED` if none is
 * left to make it from.
 */
export function furtherTransaction(kind: NewKind, shown: readonly Recorded[], moment: Moment): Recorded {
  const refunded = new Set(shown.map(({ data }) => data.correction_reference_id));
  const type = kind === 'external' ? 'ExternalTransactionRecorded' : 'TransactionConfirmed';
  const fills = shown.filter((one) => one.type === type && one.data.correction_reference_id === null);
  const originals = fills.filter(({ data }) => kind !== 'refund' || !refunded.has(data.transaction_id));
  const original = originals[moment.id % originals.length];
  if (original === undefined) throw new FuelError('REFUSED', `kind: nothing is left to make ${kind} from`);
  return kind === 'refund' ? refundOf(original, moment) : repeated(original, moment);
}

function withdrawn(
  random: Random,
  { data: { transaction_id, account_id } }: Recorded,
  { isVoided, atMs }: { readonly isVoided: boolean; readonly atMs: number },
): TransactionEvent {
  const reason = random.chance(0.8) ? random.pick(names.withdrawal_reasons) : null;
  const data = { transaction_id, account_id, reason };
  const at = formatDateTime(atMs);
  return isVoided
    ? { type: 'TransactionVoided', data: { ...data, voided_at: at } }
    : { type: 'TransactionCancelled', data: { ...data, cancelled_at: at } };
}
