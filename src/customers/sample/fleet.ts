import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { DEPARTMENTS, FUELS, MODELS, PEOPLE } from './names.ts';
import type { Random } from './random.ts';
import { type SampleAccount, sampleDirectory } from './sample-directory.ts';

type Recorded = Extract<TransactionEvent, { type: 'TransactionConfirmed' }>['data'];

/** A vehicle on the road, with its regular driver. What changes from fill to fill is not readonly. */
export interface SampleVehicle {
  readonly accountId: number;
  readonly corporate: Recorded['corporate'];
  readonly corporateGroup: Recorded['corporate_group'];
  readonly vehicle: Recorded['vehicle'];
  readonly driver: Recorded['driver'];
  readonly fees: FeeAgreement;
  readonly fuel: (typeof FUELS)[0];
  readonly tankLiters: number;
  /** Hundredths of a litre per 100 km. */
  readonly consumption: number;
  /** Kilometres, whether or not anybody reads it. */
  odometer: number;
  /** What was read at the previous fill; `null` when nothing was. */
  lastReading: number | null;
  lastCreatedMs: number;
}

/** What an account pays on top of the fuel. */
export interface FeeAgreement {
  /** Hundredths per fill. */
  readonly flat: number;
  /** Ten-thousandths of the fuel amount. */
  readonly share: number;
  /** Per cent of the fees. */
  readonly vatPercent: number;
  readonly onExternals: boolean;
}

const FILL_EVERY_DAYS = 2.5;
const MAX_VEHICLES = 20_000; // bounds what a generator of millions keeps in memory

/** The vehicles of these accounts: as many as fill up about every 2.5 days, at most 20,000. */
export function sampleFleet(
  random: Random,
  options: { readonly accountIds: readonly number[]; readonly count: number; readonly days: number },
): SampleVehicle[] {
  const accounts = sampleDirectory(options.accountIds);
  const wanted = Math.ceil((options.count * FILL_EVERY_DAYS) / options.days);
  const size = Math.max(accounts.length * 4, Math.min(wanted, MAX_VEHICLES));
  const agreements = new Map(accounts.map((account) => [account.id, feeAgreement(random)]));
  const vehicles: SampleVehicle[] = [];
  while (vehicles.length < size) {
    for (const account of accounts) {
      vehicles.push(
        sampleVehicle(random, account, agreements.get(account.id) ?? feeAgreement(random), vehicles.length),
      );
    }
  }
  return vehicles;
}

function feeAgreement(random: Random): FeeAgreement {
  return {
    flat: random.chance(0.5) ? random.between([25, 250]) : 0,
    share: random.between([25, 175]),
    vatPercent: random.pick([5, 15, 21]),
    onExternals: random.chance(0.3),
  };
}

function sampleVehicle(random: Random, account: SampleAccount, fees: FeeAgreement, n: number): SampleVehicle {
  const corporate = random.pick(account.corporates);
  const { brand, model, consumption, tankLiters } = random.pick(MODELS);
  return {
    accountId: account.id,
    corporate: { id: corporate.id, name: corporate.name },
    corporateGroup: corporate.group,
    vehicle: {
      id: 900 + n,
      code: random.chance(0.8) ? `V-${n + 1}` : null,
      number_plate: random.chance(0.97) ? numberPlate(random) : null,
      chassis_number: random.chance(0.4) ? `JAA1KR77EJ${7_100_000 + n}` : null,
      brand: random.chance(0.9) ? brand : null,
      model: random.chance(0.9) ? model : null,
      year: random.chance(0.85) ? random.between([2012, 2026]) : null,
      department: random.chance(0.7) ? random.pick(DEPARTMENTS) : null,
    },
    driver: sampleDriver(random, n),
    fees,
    fuel: random.pick(FUELS),
    tankLiters,
    consumption: random.between(consumption),
    odometer: random.between([2_000, 320_000]),
    lastReading: null,
    lastCreatedMs: Number.NEGATIVE_INFINITY,
  };
}

function sampleDriver(random: Random, n: number): Recorded['driver'] {
  const people = random.pick(PEOPLE);
  const driver = { id: 7_000 + n, name: `${random.pick(people.given)} ${random.pick(people.family)}` };
  if (random.chance(0.05)) return driver;
  return { ...driver, mobile_number: random.chance(0.85) ? `+1555${1_000_000 + n}` : null };
}

function numberPlate(random: Random): string {
  const letters = String.fromCharCode(...[0, 0, 0].map(() => random.between([65, 90])));
  return `${letters} ${random.between([100, 9_999])}`;
}
