import type { AccountCommand } from '../../domain/account-commands.ts';
import names from './names.json' with { type: 'json' };
import { Random } from './random.ts';

export type SampleAccount = ReturnType<typeof sampleAccount>;

/**
 * The sample account with this id, which does not depend on other accounts and shares no group or corporate id with them.
 * The first corporate belongs to no group, the second to the first group.
 */
export function sampleAccount(id: number) {
  const random = new Random(id);
  const groups = names.groups.slice(0, random.between([1, 3])).map((name, n) => ({ id: id * 10 + n, name }));
  const headOffice = { id: id * 100, name: 'Head Office', group: null };
  const others = names.corporates.slice(0, random.between([3, names.corporates.length])).map((name, n) => {
    const group = groups[n === 0 ? 0 : random.between([0, groups.length])] ?? null;
    return { id: id * 100 + n + 1, name, group };
  });
  return { id, name: `${random.pick(names.companies)} ${id}`, groups, corporates: [headOffice, ...others] };
}

export const PROFILE = 'demo'; // the charging profile of a sample account

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
