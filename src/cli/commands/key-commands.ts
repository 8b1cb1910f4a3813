import type { Command } from 'commander';
import type { DirectoryAccount } from '../../../projections/directory-entry.ts';
import { webhookState } from '../../accounts/account-state.ts';
import { changeAccount } from '../../accounts/change-account.ts';
import { loadAccount, loadDirectory } from '../../accounts/directory/load-directory.ts';
import { issueKey } from '../../accounts/issue-key.ts';
import type { AccountKey } from '../../domain/account.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { addRewrapCommand } from '../accounts/rewrap-command.ts';
import { addCommand, addNoun, type Session } from '../command/command.ts';
import { findKey, isShown, requirePrefix, sortedAccounts, unknownAccount } from '../command/known-names.ts';
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
    prefix: issued.prefix,
    webhook_secret: issued.webhookSecret,
    account: accountId,
    environment: config.FUEL_ENVIRONMENT,
    label: options.label ?? null,
    allow_list: options.allow ?? [],
    rate_limit: options.rateLimit,
    driver_mobile: options.driverMobile === true,
    webhook_url: webhookUrl ?? null,
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
      const document = keyJson(entry.id, found);
      out.result(document, JSON.stringify(document, null, 2));
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
  options: ListOptions,
): Promise<number> {
  for (const { id, account, unreadable } of await accountsOf(engines, options.account)) {
    if (unreadable !== null)
      out.note(`account ${id} can't be read, and its keys are not listed: ${unreadable.reason}`);
    for (const key of account?.keys.values() ?? []) {
      await out.line(options.edge ? edgeKeyJson(key) : keyJson(id, key), keyText(id, key));
    }
  }
  return 0;
}

async function accountsOf(
  engines: Session['engines'],
  accountId: number | undefined,
): Promise<readonly DirectoryAccount[]> {
  if (accountId === undefined)
    return sortedAccounts(await loadDirectory(engines.store(), engines.snapshots()));
  const account = await loadAccount(engines.store(), accountId);
  if (account === undefined && !(await isShown(engines, { accountId }))) throw unknownAccount(accountId);
  return account === undefined ? [] : [account];
}

function keyText(
  accountId: number,
  { prefix, label, active, rateLimit, allowList, webhook }: AccountKey,
): string {
  const { state, reason, since } = webhookState(webhook);
  const disabled = state === 'disabled' ? ` since ${since} (${reason})` : '';
  const shown = webhook === null ? 'no webhook' : `webhook ${webhook.url} ${state}${disabled}`;
  return [
    prefix,
    `account ${accountId}`,
    label ?? '(no label)',
    active ? 'on' : 'off',
    `${rateLimit}/60 s`,
    allowList.join(',') || 'any address',
    shown,
  ].join('  ');
}

function addChangingCommands(key: Command): void {
  addKeyChange(key, {
    usage: 'off <prefix>',
    summary: 'switch a key off at once: it answers 401 from then on',
    example: 'fuel key off a1b2c3d4e5 --reason "leaked in a public repository" --wait',
    takesReason: true,
    command: (ref, _, reason) => ({ type: 'SwitchKeyOff', ...ref, reason }),
  });
  addKeyChange(key, {
    usage: 'on <prefix>',
    summary: 'switch a key on again',
    example: 'fuel key on a1b2c3d4e5',
    command: (ref) => ({ type: 'SwitchKeyOn', ...ref }),
  });
  addKeyChange(key, {
    usage: 'allow <prefix> <cidrs>',
    summary: 'replace the addresses a key may be used from',
    example: 'fuel key allow a1b2c3d4e5 203.0.113.0/24,198.51.100.7',
    command: (ref, cidrs) => ({ type: 'SetKeyAllowList', ...ref, allowList: allowListOption(cidrs) }),
  });
  addKeyChange(key, {
    usage: 'rate-limit <prefix> <n>',
    summary: 'set how many requests a key may make in 60 seconds',
    example: 'fuel key rate-limit a1b2c3d4e5 300',
    command: (ref, limit) => ({ type: 'SetKeyRateLimit', ...ref, rateLimit: countOption(limit) }),
  });
  addKeyChange(key, {
    usage: 'driver-mobile <prefix> <on|off>',
    summary: "show or leave out the drivers' mobile numbers",
    example: 'fuel key driver-mobile a1b2c3d4e5 on',
    command: (ref, state) => ({ type: 'SetKeyDriverMobile', ...ref, enabled: onOff(state) }),
  });
}

interface KeyChange {
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  readonly takesReason?: true;
  readonly command: (
    ref: { accountId: number; prefix: string },
    value: string,
    reason: string | undefined,
  ) => AccountCommand;
}

function addKeyChange(key: Command, { usage, summary, example, takesReason, command }: KeyChange): void {
  addCommand<{ reason?: string }>(key, {
    usage,
    summary,
    example,
    ...(takesReason && { options: reasonOption }),
    changes: true,
    async work({ engines, clock, author, out }, [prefix = '', value = ''], { reason }) {
      const store = engines.store();
      requirePrefix(prefix);
      command({ accountId: 0, prefix }, value, reason); // a wrong value is wrong usage, whether the key exists or not
      const accountId = (await findKey(engines, prefix)).entry.id;
      const { changed, account } = await changeAccount({ store, clock, author }, accountId, [
        command({ accountId, prefix }, value, reason),
      ]);
      const changedKey = account.keys.get(prefix);
      const document = { changed, ...(changedKey && keyJson(accountId, changedKey)) };
      out.result(document, changed ? 'done' : 'nothing to change: it is so already');
      return 0;
    },
  });
}

/** A key as an operator may see it: no hash, no secret. */
export function keyJson(accountId: number, key: AccountKey) {
  const { state, reason, since } = webhookState(key.webhook);
  return {
    account: accountId,
    prefix: key.prefix,
    environment: key.environment,
    label: key.label,
    active: key.active,
    allow_list: key.allowList,
    rate_limit: key.rateLimit,
    driver_mobile: key.driverMobile,
    webhook_url: key.webhook?.url ?? null,
    webhook_state: state,
    webhook_reason: reason,
    webhook_since: since,
  };
}

/** A key as an external gateway needs it for checks 1 and 2. */
function edgeKeyJson(key: AccountKey) {
  return {
    prefix: key.prefix,
    environment: key.environment,
    allow_list: key.allowList,
    rate_limit: key.rateLimit,
    active: key.active,
  };
}
