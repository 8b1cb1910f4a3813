import type { Command } from 'commander';
import { loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { facts } from '../../answers/columns.ts';
import { edgeKeyAnswer, KEY_COLUMNS, keyAnswer } from '../../answers/key.ts';
import { issueKey } from '../../keys/issue-key.ts';
import { addRewrapCommand } from '../accounts/rewrap-command.ts';
import { addKeyChange } from '../command/change.ts';
import { addCommand, addNoun, type Session } from '../command/command.ts';
import { findAccount, findKey, keyOf, sortedAccounts } from '../command/known-names.ts';
import { allowListOption, countOption, idOption, onOff, reasonOption } from '../command/options.ts';
import { webhookOptions } from './webhook-commands.ts';

const DEFAULT_RATE_LIMIT = 60;

export function addKeyCommands(program: Command): void {
  const key = addNoun(program, {
    name: 'key',
    summary: 'API keys: how customers authenticate',
    example: 'fuel key list --account 7',
  });
  addIssueCommand(key);
  addShowingCommands(key);
  addChangingCommands(key);
  addRewrapCommand(key);
}

interface IssueOptions {
  readonly label?: string;
  readonly allow?: string[];
  readonly rateLimit: number;
  readonly driverMobile?: true;
  readonly webhookUrl?: string;
}

function addIssueCommand(key: Command): void {
  addCommand<IssueOptions>(key, {
    usage: 'issue <account>',
    summary: 'issue a key; the key and its webhook secret are shown only once',
    example: 'fuel key issue 7 --label ERP --allow 203.0.113.0/24,2001:db8::7',
    options: (command) =>
      command
        .option('--label <text>', 'what the key is for')
        .option('--allow <cidrs>', 'addresses it may be used from (needed in production)', allowListOption)
        .option('--rate-limit <n>', 'requests in 60 seconds', countOption, DEFAULT_RATE_LIMIT)
        .option('--driver-mobile', "show the drivers' mobile numbers")
        .option('--webhook-url <url>', 'where transactions are pushed to'),
    changes: true,
    work: issue,
  });
}

async function issue(
  session: Session,
  [account = '']: readonly string[],
  options: IssueOptions,
): Promise<number> {
  const { config, engines, clock, author, out } = session;
  const accountId = idOption(account);
  const { webhookUrl } = options;
  if (webhookUrl !== undefined) await engines.bind(); // before the master key is read: a lost one must not be replaced
  const webhook = webhookUrl === undefined ? null : webhookOptions(config, clock, webhookUrl);
  const issued = await issueKey(
    { store: engines.store(), clock, author },
    {
      accountId,
      environment: config.FUEL_ENVIRONMENT,
      label: options.label ?? null,
      allowList: options.allow ?? [],
      rateLimit: options.rateLimit,
      driverMobile: options.driverMobile === true,
      webhook,
    },
  );
  const document = {
    key: issued.key,
    webhook_secret: issued.webhookSecret,
    ...keyAnswer(accountId, keyOf(issued.account, issued.prefix)),
  };
  if (issued.warning !== null) out.note(issued.warning);
  const secret = issued.webhookSecret === null ? '' : `\nwebhook secret: ${issued.webhookSecret}`;
  await out.secret(
    document,
    `key: ${issued.key}${secret}\nKeep them now: they are never shown again.`,
    `the key ${issued.prefix} was issued, but could not be written to standard output and is lost: switch it off ` +
      `(fuel key off ${issued.prefix}) and issue another`,
  );
  return 0;
}

function addShowingCommands(key: Command): void {
  addCommand<ListOptions>(key, {
    usage: 'list',
    summary: 'list keys with their webhooks, without secrets, by account and in the order of their issue',
    example: 'fuel key list --edge --json',
    options: (command) =>
      command
        .option('--account <id>', 'keys of this account', idOption)
        .option('--edge', 'only what an external gateway needs for the edge checks'),
    work: list,
  });
  addCommand(key, {
    usage: 'show <prefix>',
    summary: 'show one key, without its secret',
    example: 'fuel key show a1b2c3d4e5',
    async work({ engines, out }, [prefix = '']) {
      const { entry, key: found } = await findKey(engines, prefix);
      const document = keyAnswer(entry.id, found);
      out.answer(document, [facts(KEY_COLUMNS, document)]);
      return 0;
    },
  });
}

interface ListOptions {
  readonly account?: number;
  readonly edge?: true;
}

/** An account's keys stand in the order in which they were issued. */
async function list(
  { engines, out }: Session,
  _args: readonly string[],
  { account: wanted, edge }: ListOptions,
): Promise<number> {
  const entries =
    wanted === undefined
      ? sortedAccounts(await loadDirectory(engines.store(), engines.directory()))
      : [await findAccount(engines, wanted)].filter((entry) => entry !== undefined);
  for (const { id, account, unreadable } of entries) {
    if (unreadable !== null)
      out.note(`account ${id} can't be read, and its keys are not listed: ${unreadable.reason}`);
    for (const key of account?.keys.values() ?? []) {
      if (edge && out.json) await out.line(edgeKeyAnswer(key), '');
      else await out.row(KEY_COLUMNS, keyAnswer(id, key));
    }
  }
  return 0;
}

function addChangingCommands(key: Command): void {
  addKeyChange<{ reason?: string }>(key, {
    usage: 'off <prefix>',
    summary: 'switch a key off at once: it answers 401 from then on',
    example: 'fuel key off a1b2c3d4e5 --reason "leaked in a public repository" --wait',
    options: reasonOption,
    change: (_, { reason }) => ({ type: 'SwitchKeyOff', reason }),
  });
  addKeyChange(key, {
    usage: 'on <prefix>',
    summary: 'switch a key on again',
    example: 'fuel key on a1b2c3d4e5',
    change: () => ({ type: 'SwitchKeyOn' }),
  });
  addKeyChange(key, {
    usage: 'allow <prefix> <cidrs>',
    summary: 'replace the addresses a key may be used from',
    example: 'fuel key allow a1b2c3d4e5 203.0.113.0/24,198.51.100.7',
    change: ([cidrs = '']) => ({ type: 'SetKeyAllowList', allowList: allowListOption(cidrs) }),
  });
  addKeyChange(key, {
    usage: 'rate-limit <prefix> <n>',
    summary: 'set how many requests a key may make in 60 seconds',
    example: 'fuel key rate-limit a1b2c3d4e5 300',
    change: ([limit = '']) => ({ type: 'SetKeyRateLimit', rateLimit: countOption(limit) }),
  });
  addKeyChange(key, {
    usage: 'driver-mobile <prefix> <on|off>',
    summary: "show or leave out the drivers' mobile numbers",
    example: 'fuel key driver-mobile a1b2c3d4e5 on',
    change: ([state = '']) => ({ type: 'SetKeyDriverMobile', enabled: onOff(state) }),
  });
}
