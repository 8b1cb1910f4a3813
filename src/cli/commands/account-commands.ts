import type { Command } from 'commander';
import type { DirectoryAccount } from '../../../projections/directory-entry.ts';
import { noAccessReason, webhookState } from '../../accounts/account-state.ts';
import { changeAccount } from '../../accounts/change-account.ts';
import { loadAccount, loadDirectory } from '../../accounts/directory/load-directory.ts';
import { type Account, activeProfile } from '../../domain/account.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { FuelError } from '../../errors.ts';
import { addApplyCommand } from '../accounts/apply-command.ts';
import { addExportCommand } from '../accounts/export-command.ts';
import { addCommand, addNoun, type Session } from '../command/command.ts';
import { sortedAccounts, unknownAccount } from '../command/known-names.ts';
import {
  dateTimeOption,
  emailsOption,
  idOption,
  nameOption,
  onOff,
  reasonOption,
} from '../command/options.ts';
import { keyJson } from './key-commands.ts';

const WORST_FIRST = ['disabled', 'active'] as const;

export function addAccountCommands(program: Command): void {
  const account = addNoun(program, {
    name: 'account',
    summary: 'customer accounts: their data and their access',
    example: 'fuel account show 7',
  });
  addShowingCommands(account);
  addAccessCommands(account);
  addStructureCommands(account);
  addApplyCommand(account);
  addExportCommand(account);
}

function addShowingCommands(account: Command): void {
  addCommand(account, {
    usage: 'list',
    summary: 'list every account by id: whether it has access now, its keys, and the state of its webhooks',
    example: 'fuel account list --json',
    work: list,
  });
  addCommand(account, {
    usage: 'show <id>',
    summary: 'show one account with its profiles, groups, corporates and keys',
    example: 'fuel account show 7',
    async work({ engines, out }, [id = '']) {
      const accountId = idOption(id);
      const entry = await loadAccount(engines.store(), accountId);
      if (entry === undefined) throw unknownAccount(accountId);
      const document = accountJson(entry);
      out.result(document, JSON.stringify(document, null, 2));
      return 0;
    },
  });
}

async function list({ engines, clock, out }: Session): Promise<number> {
  const directory = await loadDirectory(engines.store(), engines.snapshots());
  for (const entry of sortedAccounts(directory)) {
    const line = listedJson(entry, clock.now());
    await out.line(line, listedText(line));
  }
  return 0;
}

function listedJson({ id, account, unreadable }: DirectoryAccount, nowMs: number) {
  const profile = account && activeProfile(account, nowMs);
  const noAccess = account === undefined ? 'the account is unreadable' : noAccessReason(account, nowMs);
  const endsAtMs = profile?.endsAtMs ?? null;
  const keys = [...(account?.keys.values() ?? [])];
  const states = keys.filter(({ active }) => active).map(({ webhook }) => webhookState(webhook).state);
  return {
    id,
    name: account?.name ?? null,
    integration: account?.integrationEnabled ?? null,
    charging_profile_active: profile !== undefined,
    access: noAccess === undefined,
    access_until: noAccess !== undefined || endsAtMs === null ? null : formatDateTime(endsAtMs),
    no_access_reason: noAccess ?? null,
    keys: account?.keys.size ?? null,
    /** Of keys that are on. */
    webhooks: account === undefined ? null : states.filter((state) => state !== 'none').length,
    webhook_state:
      account === undefined ? null : (WORST_FIRST.find((state) => states.includes(state)) ?? 'none'),
    unreadable: unreadable?.reason ?? null,
  };
}

function listedText(line: ReturnType<typeof listedJson>): string {
  if (line.unreadable !== null) return `${line.id}  (unreadable)  ${line.unreadable}`;
  const until = line.access_until === null ? '' : ` until ${line.access_until}`;
  return [
    line.id,
    line.name,
    line.integration ? 'integration on' : 'integration off',
    line.access ? `access${until}` : `no access: ${line.no_access_reason}`,
    `${line.keys} keys`,
    line.webhooks === 0 ? 'no webhooks' : `${line.webhooks} webhooks, the worst is ${line.webhook_state}`,
  ].join('  ');
}

function addAccessCommands(account: Command): void {
  addCommand<{ name: string }>(account, {
    usage: 'open <id>',
    summary: 'open an account; it starts with the integration off and no charging profile',
    example: 'fuel account open 7 --name "North Haulage"',
    options: (command) => command.requiredOption('--name <name>', "the customer's name", nameOption),
    changes: true,
    work: (session, [id], { name }) =>
      change(session, id, (accountId) => ({ type: 'OpenAccount', accountId, name })),
  });
  addCommand<{ reason?: string }>(account, {
    usage: 'integration <id> <on|off>',
    summary: 'switch the API integration on or off (access check 4)',
    example: 'fuel account integration 7 on',
    options: reasonOption,
    changes: true,
    work: (session, [id, state = ''], { reason }) => {
      const isOn = onOff(state);
      if (isOn && reason !== undefined) throw new FuelError('USAGE', '--reason goes with off');
      return change(session, id, (accountId) =>
        isOn ? { type: 'EnableIntegration', accountId } : { type: 'DisableIntegration', accountId, reason },
      );
    },
  });
  addCommand<{ email: string[] }>(account, {
    usage: 'contact <id>',
    summary: 'set the e-mail addresses that get the notices about failing webhooks',
    example: 'fuel account contact 7 --email fleet@example.com,it@example.com',
    options: (command) => command.requiredOption('--email <addresses>', 'separated by commas', emailsOption),
    changes: true,
    work: (session, [id], { email }) =>
      change(session, id, (accountId) => ({ type: 'SetContacts', accountId, emails: email })),
  });
  addCommand<{ profile: string; from: number; to?: number }>(account, {
    usage: 'profile <id>',
    summary: 'set a charging profile (access check 5); the same profile again is renewed or shortened',
    example: 'fuel account profile 7 --profile basic --from 2026-09-01T00:00:00Z --to 2027-09-01T00:00:00Z',
    options: (command) =>
      command
        .requiredOption('--profile <name>', 'its name', nameOption)
        .requiredOption('--from <time>', 'when access starts', dateTimeOption)
        .option('--to <time>', 'when access ends (default: open-ended)', dateTimeOption),
    changes: true,
    work: (session, [id], { profile, from, to }) =>
      change(session, id, (accountId) => ({
        type: 'SetChargingProfile',
        accountId,
        profile,
        fromMs: from,
        toMs: to ?? null,
      })),
  });
}

function addStructureCommands(account: Command): void {
  addCommand<{ name: string }>(account, {
    usage: 'group <id> <group>',
    summary: 'add or rename a corporate group',
    example: 'fuel account group 7 3 --name Depots',
    options: (command) => command.requiredOption('--name <name>', "the group's name", nameOption),
    changes: true,
    work: (session, [id, group = ''], { name }) =>
      change(session, id, (accountId) => ({
        type: 'SetCorporateGroup',
        accountId,
        groupId: idOption(group),
        name,
      })),
  });
  addCommand<{ name: string; group?: number | false }>(account, {
    usage: 'corporate <id> <corporate>',
    summary: 'add, rename or move a corporate',
    example: 'fuel account corporate 7 31 --name "North Depot" --group 3',
    options: (command) =>
      command
        .requiredOption('--name <name>', "the corporate's name", nameOption)
        .option('--group <id>', 'the group it is in', idOption)
        .option('--no-group', 'it is in no group'),
    changes: true,
    work: (session, [id, corporate = ''], { name, group }) =>
      change(session, id, (accountId) => ({
        type: 'SetCorporate',
        accountId,
        corporateId: idOption(corporate),
        name,
        groupId: group === false ? null : group,
      })),
  });
}

async function change(
  { engines, clock, author, out }: Session,
  id: string | undefined,
  command: (accountId: number) => AccountCommand,
): Promise<number> {
  const accountId = idOption(id ?? '');
  const writer = { store: engines.store(), clock, author };
  const { changed, account } = await changeAccount(writer, accountId, [command(accountId)]);
  out.result({ changed, ...summaryJson(account) }, changed ? 'done' : 'nothing to change: it is so already');
  return 0;
}

function accountJson({ id, account, unreadable }: DirectoryAccount) {
  if (account === undefined) return { id, unreadable };
  return {
    ...summaryJson(account),
    keys: [...account.keys.values()].map((key) => keyJson(id, key)),
    unreadable,
  };
}

function summaryJson(account: Account) {
  return {
    id: account.id,
    name: account.name,
    integration: account.integrationEnabled,
    contacts: account.emails,
    profiles: [...account.profiles].map(([profile, { fromMs, toMs }]) => ({
      profile,
      from: formatDateTime(fromMs),
      to: toMs === null ? null : formatDateTime(toMs),
    })),
    groups: [...account.groups].map(([groupId, { name }]) => ({ id: groupId, name })),
    corporates: [...account.corporates].map(([corporateId, { name, groupId }]) => ({
      id: corporateId,
      name,
      group: groupId,
    })),
  };
}
