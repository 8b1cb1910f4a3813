import { Argument, type Command } from '@commander-js/extra-typings';
import { changeAccount } from '../../../accounts/change-account.ts';
import { loadAccount } from '../../../accounts/rows/load-account.ts';
import { everyAccount, readAccount } from '../../../accounts/rows/stored-account.ts';
import { FuelError } from '../../../base/errors.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { accountAnswer, accountLine, accountShown, accountSummary } from '../../answers/account.ts';
import { readId, readTime, requirePast } from '../../answers/filters.ts';
import { unknownAccount } from '../../answers/names.ts';
import { printChange } from '../command/change.ts';
import { command, noun, type Session } from '../command/command.ts';
import { currentAccounts } from '../command/known-names.ts';
import * as option from '../command/options.ts';
import { apply, exportAccounts } from './account-file-commands.ts';

/** The members of a line. */
const ACCOUNT_COLUMNS = [
  'id',
  'name',
  'closed',
  'integration',
  'charging_profile_active',
  'access',
  'access_until',
  'no_access_reason',
  'answered',
  'keys',
  'webhooks',
  'webhook_state',
  'unreadable',
];

const list = command({
  name: 'list',
  summary: 'list accounts by id, with their access, their keys and the state of their webhooks',
  example: 'fuel account list --csv > accounts.csv',
  syntax: (it) => it.option('--closed', 'include closed accounts'),
  lists: { what: 'accounts', csv: () => ACCOUNT_COLUMNS },
  async work(session, _, { closed }) {
    const { clock, out } = session;
    for await (const entry of everyAccount(await currentAccounts(session)))
      if (closed || !entry.account?.closed) {
        const line = accountLine(entry, clock.now());
        await out.row(line, { id: 'account', shown: accountShown(entry, line, clock.now()) });
      }
  },
});

const show = command({
  name: 'show',
  summary: 'show an account with its profiles, groups, corporates and keys, now or at an earlier time',
  example: 'fuel account show 7 --at 2026-09-03T12:00:00Z',
  syntax: (it) =>
    it
      .argument('<id>', 'the account', readId)
      .option('--at <time>', 'show the account as it was at this time', readTime),
  async work(session, [accountId], { at }) {
    const { engines, clock, out } = session;
    requirePast(at, clock.now());
    const known = await readAccount(await currentAccounts(session), accountId);
    if (known === undefined) throw new FuelError('REFUSED', unknownAccount(accountId));
    const entry = at === undefined ? known : await loadAccount(engines.store(), accountId, { untilMs: at });
    if (entry === undefined)
      throw new FuelError('REFUSED', `Account ${accountId} was not open at ${formatDateTime(at ?? 0)}`);
    const then = at === undefined ? {} : { at: formatDateTime(at) };
    out.answer({ ...then, ...accountAnswer(entry, at ?? clock.now()) }, { id: 'account' });
  },
});

const open = command({
  name: 'open',
  summary: 'open an account; its integration is off and it has no charging profile at first',
  example: 'fuel account open 7 --name "North Haulage"',
  syntax: named,
  changes: true,
  begins: true,
  work: (session, [accountId], { name }) =>
    change(
      session,
      { type: 'OpenAccount', accountId, name },
      (account) =>
        `Opened ${account}. Next: fuel account integration ${accountId} on, and fuel account profile ${accountId}`,
    ),
});

const rename = command({
  name: 'rename',
  summary: 'rename an account',
  example: 'fuel account rename 7 --name "North Haulage Ltd"',
  syntax: named,
  changes: true,
  work: (session, [accountId], { name }) =>
    change(session, { type: 'RenameAccount', accountId, name }, (account) => `Renamed ${account}`),
});

const close = command({
  name: 'close',
  summary:
    'close an account: its integration and its keys are switched off, pending deliveries end, and no change is ' +
    'accepted until it is reopened',
  example: 'fuel account close 7 --reason "contract ended, ticket 4711" --wait',
  syntax: withReason,
  changes: true,
  work: (session, [accountId], { reason }) =>
    change(
      session,
      { type: 'CloseAccount', accountId, reason },
      (account) => `Closed ${account}. Its integration and all of its keys are off`,
    ),
});

const reopen = command({
  name: 'reopen',
  summary: 'accept changes to a closed account again; what closing it switched off stays off',
  example: 'fuel account reopen 7 --reason "contract renewed"',
  syntax: withReason,
  changes: true,
  work: (session, [accountId], { reason }) =>
    change(
      session,
      { type: 'ReopenAccount', accountId, reason },
      (account) =>
        `Reopened ${account}. Its integration and its keys are still off. Next: fuel account integration ${accountId} on`,
    ),
});

const integration = command({
  name: 'integration',
  summary: 'switch the API integration on or off (access check 4)',
  example: 'fuel account integration 7 on',
  syntax: (it) =>
    it.argument('<id>', 'the account', readId).addArgument(new Argument('<on|off>').choices(['on', 'off'])),
  changes: true,
  asksWhy: (_, [, to]) => to === 'off',
  reasonFor: 'with off',
  async work(session, [accountId, to], { reason }) {
    const isOn = to === 'on';
    if (isOn && reason !== undefined) throw option.usage('--reason can only be given with off');
    if (isOn)
      return change(
        session,
        { type: 'EnableIntegration', accountId },
        (account) =>
          `Switched on the integration of ${account}. Next: fuel account show ${accountId}, which says if it has access`,
      );
    return change(
      session,
      { type: 'DisableIntegration', accountId, reason },
      (account) =>
        `Switched off the integration of ${account}. Its requests are answered with 403, and its deliveries are held`,
    );
  },
});

const contact = command({
  name: 'contact',
  summary: 'set the e-mail addresses that are notified of failing webhooks',
  example: 'fuel account contact 7 --email fleet@example.com,it@example.com',
  syntax: (it) =>
    it
      .argument('<id>', 'the account', readId)
      .option('--email <addresses>', 'the addresses, separated by commas', option.readEmails)
      .option('--no-email', 'notify nobody'),
  changes: true,
  check(_, { email }) {
    if (email === undefined) throw option.usage('Give --email with the addresses, or --no-email');
  },
  work: (session, [accountId], { email }) =>
    change(session, { type: 'SetContacts', accountId, emails: email || [] }, (account) =>
      email ? `Notices about ${account} go to ${email.join(', ')}` : `Nobody is notified about ${account}`,
    ),
});

const profile = command({
  name: 'profile',
  summary: 'set a charging profile (access check 5), or renew or shorten it',
  example: 'fuel account profile 7 --profile basic --from 2026-09-01T00:00:00Z --to 2027-09-01T00:00:00Z',
  syntax: (it) =>
    it
      .argument('<id>', 'the account', readId)
      .requiredOption('--profile <name>', "the profile's name", option.readText)
      .requiredOption('--from <time>', 'when access starts', readTime)
      .option('--to <time>', 'when access ends (default: open-ended)', readTime),
  changes: true,
  work: (session, [accountId], { profile, from: fromMs, to: toMs = null }) =>
    change(session, { type: 'SetChargingProfile', accountId, profile, fromMs, toMs }, (account) => {
      const end = toMs === null ? '' : ` to ${formatDateTime(toMs)}`;
      return `Set the profile ${profile} of ${account} from ${formatDateTime(fromMs)}${end}`;
    }),
});

const group = command({
  name: 'group',
  summary: 'add or rename a corporate group',
  example: 'fuel account group 7 3 --name Depots',
  syntax: (it) =>
    it
      .argument('<id>', 'the account', readId)
      .argument('<group>', 'the id of the group', readId)
      .requiredOption('--name <name>', "the group's name", option.readText),
  changes: true,
  work: (session, [accountId, groupId], { name }) =>
    change(
      session,
      { type: 'SetCorporateGroup', accountId, groupId, name },
      (account) => `Set corporate group ${groupId} (${name}) of ${account}`,
    ),
});

const corporate = command({
  name: 'corporate',
  summary: 'add, rename or move a corporate',
  example: 'fuel account corporate 7 31 --name "North Depot" --group 3',
  syntax: (it) =>
    it
      .argument('<id>', 'the account', readId)
      .argument('<corporate>', 'the id of the corporate', readId)
      .option('--name <name>', "the corporate's name; required for a new one", option.readText)
      .option('--group <id>', 'the group that it belongs to', readId)
      .option('--no-group', 'remove it from its group'),
  changes: true,
  work(session, [accountId, corporateId], { name, group }) {
    const groupId = group === false ? null : group;
    return change(
      session,
      { type: 'SetCorporate', accountId, corporateId, name, groupId },
      (account) => `Set corporate ${corporateId} of ${account}`,
    );
  },
});

export const addAccountCommands = noun({
  name: 'account',
  summary: 'customer accounts, their data and their access',
  example: 'fuel account show 7',
  commands: [
    list,
    show,
    open,
    rename,
    close,
    reopen,
    integration,
    contact,
    profile,
    group,
    corporate,
    apply,
    exportAccounts,
  ],
});

/** The account and its name. */
function named(it: Command) {
  return it
    .argument('<id>', 'the account', readId)
    .requiredOption('--name <name>', "the customer's name", option.readText);
}

/** The account and the reason for what is done to it. */
function withReason(it: Command) {
  return it
    .argument('<id>', 'the account', readId)
    .requiredOption('--reason <reason>', option.REASON, option.readText);
}

async function change(
  session: Session,
  command: AccountCommand,
  done: (account: string) => string,
): Promise<void> {
  const { events, account } = await changeAccount(session.writer(), command.accountId, [command]);
  const named = `account ${account.id} (${account.name})`;
  printChange(session, events.length > 0, accountSummary(account), done(named));
  if (events.some(({ type }) => type === 'CorporateMoved')) {
    session.out.note(
      'Existing records keep their former group: only newer records are found by the new one.',
    );
  }
}
