import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { DEPARTMENTS, FUELS, MODELS, PEOPLE } from './names.ts';
import type { Random } from './random.ts';
import { type SampleAccount, sampleAccount } from './sample-directory.ts';

export type Confirmed = Extract<TransactionEvent, { type: 'TransactionConfirmed' }>;

/** A vehicle with its regular driver. The members that change with each fill are not readonly. */
export interface SampleVehicle {
  /** The members that all of its transactions have in common. */
  readonly facts: Pick<
    Confirmed['data'],
    'account_id' | 'corporate' | 'corporate_group' | 'vehicle' | 'driver'
  >;
  readonly fuel: (typeof FUELS)[0];
  readonly model: (typeof MODELS)[0];
  /** In kilometres. It counts even when nobody reads it. */
  odometer: number;
  /** The reading at the previous fill, or `null` if there was none. */
  lastReading: number | null;
}

const FILL_EVERY_DAYS = 2.5;
const MAX_VEHICLES = 20_000; // bounds the memory of a generator of millions

/** The vehicles of these accounts. Each fills up about every 2.5 days; there are at most 20,000. */
export function sampleFleet(
  random: Random,
  options: { readonly accountIds: readonly number[]; readonly count: number; readonly days: number },
): SampleVehicle[] {
  const accounts = options.accountIds.map(sampleAccount);
  const wanted = Math.ceil((options.count * FILL_EVERY_DAYS) / options.days / accounts.length);
  const size = Math.max(4, Math.min(wanted, Math.ceil(MAX_VEHICLES / accounts.length)));
  return accounts.flatMap((account, a) =>
    Array.from({ length: size }, (_, n) => sampleVehicle(random, account, a * size + n)),
  );
}

function sampleVehicle(random: Random, account: SampleAccount, n: number): SampleVehicle {
  const { group, ...corporate } = random.pick(account.corporates);
  const model = random.pick(MODELS);
  const driver = { id: 7_000 + n, name: random.pick(PEOPLE) };
  const mobile_number = random.chance(0.85) ? `+1555${1_000_000 + n}` : null;
  return {
    facts: {
      account_id: account.id,
      corporate,
      corporate_group: group,
      vehicle: {
        id: 900 + n,
        code: random.chance(0.8) ? `V-${n + 1}` : null,
        number_plate: random.chance(0.97) ? `ABC ${1_000 + n}` : null,
        chassis_number: random.chance(0.4) ? `JAA1KR77EJ${7_100_000 + n}` : null,
        brand: random.chance(0.9) ? model.brand : null,
        model: random.chance(0.9) ? model.model : null,
        year: random.chance(0.85) ? random.between([2012, 2026]) : null,
        department: random.chance(0.7) ? random.pick(DEPARTMENTS) : null,
      },
      driver: random.chance(0.05) ? driver : { ...driver, mobile_number },
    },
    fuel: random.pick(FUELS),
    model,
    odometer: random.between([2_000, 320_000]),
    lastReading: null,
  };
}
