import type { Command } from 'commander';
import { loadAccount, loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { FuelError } from '../../../base/errors.ts';
import { ACCOUNT_COLUMNS, accountAnswer, accountLine, accountSections } from '../../answers/account.ts';
import { unknownAccount } from '../../answers/names.ts';
import { addApplyCommand } from '../accounts/apply-command.ts';
import { addExportCommand } from '../accounts/export-command.ts';
import { addAccountChange } from '../command/change.ts';
import { addCommand, addNoun } from '../command/command.ts';
import { sortedAccounts } from '../command/known-names.ts';
import {
  dateTimeOption,
  emailsOption,
  idOption,
  nameOption,
  onOff,
  reasonOption,
} from '../command/options.ts';

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
    async work({ engines, clock, out }) {
      const directory = await loadDirectory(engines.store(), engines.directory());
      for (const entry of sortedAccounts(directory))
        await out.row(ACCOUNT_COLUMNS, accountLine(entry, clock.now()));
      return 0;
    },
  });
  addCommand(account, {
    usage: 'show <id>',
    summary: 'show one account with its profiles, groups, corporates and keys',
    example: 'fuel account show 7',
    async work({ engines, out }, [id = '']) {
      const accountId = idOption(id);
      const entry = await loadAccount(engines.store(), accountId);
      if (entry === undefined) throw new FuelError('REFUSED', unknownAccount(accountId));
      const document = accountAnswer(entry);
      out.answer(document, accountSections(document));
      return 0;
    },
  });
}

function addAccessCommands(account: Command): void {
  addAccountChange<{ name: string }>(account, {
    usage: 'open <id>',
    summary: 'open an account; it starts with the integration off and no charging profile',
    example: 'fuel account open 7 --name "North Haulage"',
    options: (command) => command.requiredOption('--name <name>', "the customer's name", nameOption),
    change: (_, { name }) => ({ type: 'OpenAccount', name }),
  });
  addAccountChange<{ reason?: string }>(account, {
    usage: 'integration <id> <on|off>',
    summary: 'switch the API integration on or off (access check 4)',
    example: 'fuel account integration 7 on',
    options: reasonOption,
    change([state = ''], { reason }) {
      const isOn = onOff(state);
      if (isOn && reason !== undefined) throw new FuelError('USAGE', '--reason goes with off');
      return isOn ? { type: 'EnableIntegration' } : { type: 'DisableIntegration', reason };
    },
  });
  addAccountChange<{ email: string[] }>(account, {
    usage: 'contact <id>',
    summary: 'set the e-mail addresses that get the notices about failing webhooks',
    example: 'fuel account contact 7 --email fleet@example.com,it@example.com',
    options: (command) => command.requiredOption('--email <addresses>', 'separated by commas', emailsOption),
    change: (_, { email }) => ({ type: 'SetContacts', emails: email }),
  });
  addAccountChange<{ profile: string; from: number; to?: number }>(account, {
    usage: 'profile <id>',
    summary: 'set a charging profile (access check 5); the same profile again is renewed or shortened',
    example: 'fuel account profile 7 --profile basic --from 2026-09-01T00:00:00Z --to 2027-09-01T00:00:00Z',
    options: (command) =>
      command
        .requiredOption('--profile <name>', 'its name', nameOption)
        .requiredOption('--from <time>', 'when access starts', dateTimeOption)
        .option('--to <time>', 'when access ends (default: open-ended)', dateTimeOption),
    change: (_, { profile, from, to }) => ({
      type: 'SetChargingProfile',
      profile,
      fromMs: from,
      toMs: to ?? null,
    }),
  });
}

function addStructureCommands(account: Command): void {
  addAccountChange<{ name: string }>(account, {
    usage: 'group <id> <group>',
    summary: 'add or rename a corporate group',
    example: 'fuel account group 7 3 --name Depots',
    options: (command) => command.requiredOption('--name <name>', "the group's name", nameOption),
    change: ([group = ''], { name }) => ({ type: 'SetCorporateGroup', groupId: idOption(group), name }),
  });
  addAccountChange<{ name: string; group?: number | false }>(account, {
    usage: 'corporate <id> <corporate>',
    summary: 'add, rename or move a corporate',
    example: 'fuel account corporate 7 31 --name "North Depot" --group 3',
    options: (command) =>
      command
        .requiredOption('--name <name>', "the corporate's name", nameOption)
        .option('--group <id>', 'the group it is in', idOption)
        .option('--no-group', 'it is in no group'),
    change: ([corporate = ''], { name, group }) => ({
      type: 'SetCorporate',
      corporateId: idOption(corporate),
      name,
      groupId: group === false ? null : group,
    }),
  });
}
