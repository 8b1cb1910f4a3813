import type { AccountCommand } from '../../domain/account-commands.ts';
import { COMPANIES, CORPORATES, GROUPS } from './names.ts';
import { Random } from './random.ts';

interface SampleGroup {
  readonly id: number;
  readonly name: string;
}

interface SampleCorporate {
  readonly id: number;
  readonly name: string;
  /** `null` if it belongs to no group. */
  readonly group: SampleGroup | null;
}

export interface SampleAccount {
  readonly id: number;
  readonly name: string;
  readonly groups: readonly SampleGroup[];
  /** The first belongs to no group, the second to the first group. */
  readonly corporates: readonly [SampleCorporate, ...SampleCorporate[]];
}

/**
 * The sample account with this id, which does not depend on other accounts. Group ids are `10 × account + n` and corporate ids
 * `100 × account + n`, so accounts do not share any.
 */
export function sampleAccount(id: number): SampleAccount {
  const random = new Random(id);
  const groups = GROUPS.slice(0, random.between([1, 3])).map((name, n) => ({ id: id * 10 + n, name }));
  const headOffice = { id: id * 100, name: 'Head Office', group: null };
  const others = CORPORATES.slice(0, random.between([3, CORPORATES.length])).map((name, n) => {
    const group = groups[n === 0 ? 0 : random.between([0, groups.length])] ?? null;
    return { id: id * 100 + n + 1, name, group };
  });
  return { id, name: `${random.pick(COMPANIES)} ${id}`, groups, corporates: [headOffice, ...others] };
}

/** The charging profile of a sample account. */
export const PROFILE = 'demo';

/** The commands that open the account with its groups and corporates, and give it access from `fromMs` on. */
export function openingCommands({ id: accountId, name, ...account }: SampleAccount, fromMs: number) {
  const commands: AccountCommand[] = [
    { type: 'OpenAccount', accountId, name },
    { type: 'EnableIntegration', accountId },
    { type: 'SetChargingProfile', accountId, profile: PROFILE, fromMs, toMs: null },
  ];
  for (const { id: groupId, name } of account.groups)
    commands.push({ type: 'SetCorporateGroup', accountId, groupId, name });
  for (const { id: corporateId, name, group } of account.corporates)
    commands.push({ type: 'SetCorporate', accountId, corporateId, name, groupId: group?.id ?? null });
  return commands;
}
