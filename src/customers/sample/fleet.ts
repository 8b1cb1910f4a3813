import names from './names.json' with { type: 'json' };
import type { Random } from './random.ts';
import { type SampleAccount, sampleAccount } from './sample-directory.ts';

/** A vehicle with its regular driver. */
export type SampleVehicle = ReturnType<typeof sampleVehicle>;

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

function sampleVehicle(random: Random, account: SampleAccount, n: number) {
  const { group, ...corporate } = random.pick(account.corporates);
  const model = random.pick(names.models);
  const driver = { id: 7_000 + n, name: random.pick(names.drivers) };
  const mobile_number = random.chance(0.85) ? `+1555${1_000_000 + n}` : null;
  return {
    /** The members that all of its transactions have in common. */
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
        department: random.chance(0.7) ? random.pick(names.departments) : null,
      },
      driver: random.chance(0.05) ? driver : { ...driver, mobile_number },
    },
    /** Its price is in hundredths of the account's currency per litre. */
    fuel: random.pick(names.fuels),
    /** Its consumption is in hundredths of a litre per 100 km. */
    model,
    /** In kilometres. It changes with each fill, even when nobody reads it. */
    odometer: random.between([2_000, 320_000]),
    /** The reading at the previous fill, or `null` if there was none. */
    lastReading: null as number | null,
  };
}
