import { changeAccount } from '../../../accounts/change-account.ts';
import type { Directory } from '../../../accounts/directory/fold/directory.ts';
import type { DirectoryAccount } from '../../../accounts/directory/fold/directory-entry.ts';
import { loadAccount, loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { FuelError } from '../../../base/errors.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import type { DomainEvent } from '../../../domain/events.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { accountAnswer, accountLine, accountSummary } from '../../answers/account.ts';
import { readId, requirePast } from '../../answers/filters.ts';
import { unknownAccount } from '../../answers/names.ts';
import { applyAccounts } from '../../apply/apply-accounts.ts';
import { bytesOf, linesOf } from '../../apply/export-account.ts';
import { MAX_LINE_BYTES } from '../../lines/lines.ts';
import { printChange } from '../command/change.ts';
import { command, noun, requiresReason, type Session } from '../command/command.ts';
import { sortedAccounts } from '../command/known-names.ts';
import { storeOfDryRun } from '../command/known-store.ts';
import { longWork, openInput, requireReadable } from '../command/long-work.ts';
import * as option from '../command/options.ts';

const list = command({
  usage: 'list',
  summary:
    'list the accounts by id: whether they have access now, their keys, and the state of their webhooks',
  example: 'fuel account list --json',
  options: { closed: option.flag('closed accounts too') },
  async work({ engines, clock, out }, _, { closed }) {
    const directory = await loadDirectory(engines.store(), engines.directory());
    for (const entry of sortedAccounts(directory))
      if (closed || !entry.account?.closed) await out.row(accountLine(entry, clock.now()), 'account');
  },
});

const show = command({
  usage: 'show <id>',
  summary: 'show one account with its profiles, groups, corporates and keys, as they are or as they were',
  example: 'fuel account show 7 --at 2026-09-03T12:00:00Z',
  args: [readId],
  options: { at: option.time('as of then, by what was recorded until then') },
  async work({ engines, clock, out }, [accountId], { at }) {
    requirePast(at, clock.now());
    const entry = await loadAccount(engines.store(), accountId, { untilMs: at });
    if (entry === undefined) {
      const isOpen = at !== undefined && (await loadAccount(engines.store(), accountId)) !== undefined;
      const why = isOpen
        ? `account ${accountId} was not open at ${formatDateTime(at)}`
        : unknownAccount(accountId);
      throw new FuelError('REFUSED', why);
    }
    const then = at === undefined ? {} : { at: formatDateTime(at) };
    out.answer({ ...then, ...accountAnswer(entry, at ?? clock.now()) }, { id: 'account' });
  },
});

const open = command({
  usage: 'open <id>',
  summary: 'open an account; it starts with the integration off and no charging profile',
  example: 'fuel account open 7 --name "North Haulage"',
  args: [readId],
  options: { name: option.required(option.text('name', "the customer's name")) },
  changes: true,
  begins: true,
  work: (session, [accountId], { name }) => change(session, { type: 'OpenAccount', accountId, name }),
});

const rename = command({
  usage: 'rename <id>',
  summary: 'give an account another name',
  example: 'fuel account rename 7 --name "North Haulage Ltd"',
  args: [readId],
  options: { name: option.required(option.text('name', "the customer's name")) },
  changes: true,
  work: (session, [accountId], { name }) => change(session, { type: 'RenameAccount', accountId, name }),
});

const close = command({
  usage: 'close <id>',
  summary:
    'close an account: its integration and every key are switched off, pending deliveries end, and nothing of it is changed until it is reopened',
  example: 'fuel account close 7 --reason "contract ended, ticket 4711" --wait',
  args: [readId],
  options: { reason: option.required(option.reason) },
  changes: true,
  work: (session, [accountId], { reason }) => change(session, { type: 'CloseAccount', accountId, reason }),
});

const reopen = command({
  usage: 'reopen <id>',
  summary: 'let a closed account be changed again; what its closing switched off stays off',
  example: 'fuel account reopen 7 --reason "contract renewed"',
  args: [readId],
  options: { reason: option.required(option.reason) },
  changes: true,
  work: (session, [accountId], { reason }) => change(session, { type: 'ReopenAccount', accountId, reason }),
});

const integration = command({
  usage: 'integration <id> <on|off>',
  summary: 'switch the API integration on or off (access check 4)',
  example: 'fuel account integration 7 on',
  args: [readId, option.readOnOff],
  changes: true,
  asksWhy: (_, [, isOn]) => !isOn,
  async work(session, [accountId, isOn], { reason }) {
    if (isOn && reason !== undefined) throw option.usage('--reason goes with off');
    if (isOn) return change(session, { type: 'EnableIntegration', accountId });
    return change(session, { type: 'DisableIntegration', accountId, reason });
  },
});

const contact = command({
  usage: 'contact <id>',
  summary: 'set the e-mail addresses that get the notices about failing webhooks',
  example: 'fuel account contact 7 --email fleet@example.com,it@example.com',
  args: [readId],
  options: { email: option.required(option.valued('addresses', 'separated by commas', option.readEmails)) },
  changes: true,
  work: (session, [accountId], { email }) =>
    change(session, { type: 'SetContacts', accountId, emails: email }),
});

const profile = command({
  usage: 'profile <id>',
  summary: 'set a charging profile (access check 5); the same profile again is renewed or shortened',
  example: 'fuel account profile 7 --profile basic --from 2026-09-01T00:00:00Z --to 2027-09-01T00:00:00Z',
  args: [readId],
  options: {
    profile: option.required(option.text('name', 'its name')),
    from: option.required(option.time('when access starts')),
    to: option.time('when access ends (default: open-ended)'),
  },
  changes: true,
  work: (session, [accountId], { profile, from: fromMs, to: toMs = null }) =>
    change(session, { type: 'SetChargingProfile', accountId, profile, fromMs, toMs }),
});

const group = command({
  usage: 'group <id> <group>',
  summary: 'add or rename a corporate group',
  example: 'fuel account group 7 3 --name Depots',
  args: [readId, readId],
  options: { name: option.required(option.text('name', "the group's name")) },
  changes: true,
  work: (session, [accountId, groupId], { name }) =>
    change(session, { type: 'SetCorporateGroup', accountId, groupId, name }),
});

const groupOption: option.OptionOf<number | false | undefined> = option.id('the group it is in');

const corporate = command({
  usage: 'corporate <id> <corporate>',
  summary: 'add, rename or move a corporate',
  example: 'fuel account corporate 7 31 --name "North Depot" --group 3',
  args: [readId, readId],
  options: {
    name: option.text('name', "the corporate's name; a new one needs it"),
    group: groupOption,
    noGroup: option.flag('it is in no group'),
  },
  changes: true,
  work(session, [accountId, corporateId], { name, group }) {
    const groupId = group === false ? null : group;
    return change(session, { type: 'SetCorporate', accountId, corporateId, name, groupId });
  },
});

const apply = command({
  usage: 'apply <file>',
  summary:
    'make accounts what a file of JSON lines says, or standard input (-): one account a line; what is left out stays',
  example: 'fuel account apply customers.jsonl --dry-run',
  args: [String],
  options: {
    dryRun: option.flag('record nothing; show what would be recorded (with --json on standard error)'),
    reason: option.reason,
  },
  changes: ({ dryRun }) => dryRun !== true,
  begins: true,
  check: ([file]) => requireReadable(file),
  work(session, [file], { dryRun = false, reason }) {
    const { clock, author, out } = session;
    const why = { reason, isAsked: requiresReason(session.config) };
    return longWork(
      out,
      { again: 'apply the same file again', names: dryRun ? { applied: 'would apply' } : {} },
      async ({ onRefused, endLine, ...parts }) => {
        const input = openInput(file, parts.signal);
        const show = async (events: readonly DomainEvent[]): Promise<void> => {
          endLine();
          for (const event of events) {
            // With --json there is one document on standard output: the counts.
            if (out.json) out.note(eventText(event));
            else await out.line(undefined, eventText(event));
          }
        };
        return applyAccounts({
          store: dryRun ? storeOfDryRun(session) : session.engines.store(),
          ...{ input, author, clock, dryRun, why },
          ...(dryRun && { onApplied: show }),
          onRefused: (lineNumber, reason) => onRefused(`line ${lineNumber}`, reason),
          ...parts,
        });
      },
    );
  },
});

const exportAccounts = command({
  usage: 'export [ids...]',
  summary:
    'print accounts in the form that fuel account apply reads, sorted by id: all that are not closed, or those that are named',
  example: 'fuel account export > customers.jsonl',
  async work({ engines, out }, ids) {
    const named = ids.map(readId);
    const directory = await loadDirectory(engines.store(), engines.directory());
    let faults = 0;
    const fault = (reason: string): void => {
      faults += 1;
      out.note(reason);
    };
    for (const { id, account, unreadable } of accountsOf(directory, named)) {
      if (account === undefined) {
        fault(`account ${id} is not exported, since it can't be read: ${unreadable?.reason}`);
        continue;
      }
      if (account.closed !== null) {
        if (named.length > 0)
          fault(`account ${id} is closed: what is applied is never closed, so it is left out`);
        continue;
      }
      for (const line of linesOf(account)) {
        if (bytesOf(line) > MAX_LINE_BYTES) {
          fault(
            `account ${id}: a line is longer than the ${MAX_LINE_BYTES} bytes that fuel account apply takes`,
          );
        }
        await out.line(line, JSON.stringify(line));
      }
    }
    return faults > 0 ? 1 : 0;
  },
});

export const addAccountCommands = noun({
  name: 'account',
  summary: 'customer accounts: their data and their access',
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

async function change(session: Session, command: AccountCommand): Promise<void> {
  const { events, account } = await changeAccount(session.writer(), command.accountId, [command]);
  printChange(session, events.length > 0, accountSummary(account));
  if (events.some(({ type }) => type === 'CorporateMoved')) {
    session.out.note(
      'Records that were made before keep the group they had: only newer ones are found by the new group.',
    );
  }
}

function eventText({ type, data }: DomainEvent): string {
  const { account_id: id, ...rest } = data as Readonly<Record<string, unknown>>;
  return `account ${id}  ${type}  ${JSON.stringify(rest)}`;
}

/** Sorted by id. Throws `REFUSED` before anything is printed if one is not known. */
function accountsOf(directory: Directory, ids: readonly number[]): DirectoryAccount[] {
  for (const id of ids)
    if (directory.account(id) === undefined) throw new FuelError('REFUSED', unknownAccount(id));
  return sortedAccounts(directory).filter(({ id }) => ids.length === 0 || ids.includes(id));
}
