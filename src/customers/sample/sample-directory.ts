import { COMPANIES, CORPORATES, GROUPS } from './names.ts';
import { Random } from './random.ts';

export interface SampleCorporate {
  readonly id: number;
  readonly name: string;
  /** `null` where it is in no group. */
  readonly group: { readonly id: number; readonly name: string } | null;
}

export interface SampleAccount {
  readonly id: number;
  readonly name: string;
  readonly groups: readonly { readonly id: number; readonly name: string }[];
  /** At least one; some in a group, at least one in none. */
  readonly corporates: readonly [SampleCorporate, ...SampleCorporate[]];
}

/**
 * The accounts, groups and corporates that the sample transactions of these accounts name, in the order
 * given. An account looks the same whatever the others are. Group ids are `10 × account + n`, corporate ids
 * `100 × account + n`, so accounts do not share any.
 */
export function sampleDirectory(accountIds: readonly number[]): SampleAccount[] {
  return accountIds.map(sampleAccount);
}

function sampleAccount(id: number): SampleAccount {
  const random = new Random(id);
  const groups = GROUPS.slice(0, random.between([1, 3])).map((name, n) => ({ id: id * 10 + n, name }));
  const loose: SampleCorporate = { id: id * 100, name: 'Head Office', group: null };
  const others = CORPORATES.slice(0, random.between([3, CORPORATES.length])).map((name, n) => ({
    id: id * 100 + n + 1,
    name,
    group: groups[random.between([0, groups.length])] ?? null,
  }));
  const first = others[0];
  // Otherwise all corporates might be without a group, and no group would ever appear.
  if (first !== undefined) first.group = groups[0] ?? null;
  return { id, name: `${random.pick(COMPANIES)} ${id}`, groups, corporates: [loose, ...others] };
}
