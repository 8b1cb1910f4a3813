import { loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { openMasterKeys } from '../../../accounts/master-key.ts';
import { facts } from '../../answers/columns.ts';
import { readId } from '../../answers/filters.ts';
import { edgeKeyAnswer, KEY_COLUMNS, keyAnswer } from '../../answers/key.ts';
import { readPrefix } from '../../answers/names.ts';
import { issueKey } from '../../keys/issue-key.ts';
import { rewrapSecrets } from '../../keys/webhook-secrets.ts';
import { changeKey, type KeyChange, printChange } from '../command/change.ts';
import { command, noun, type Session } from '../command/command.ts';
import { requireStore } from '../command/command-engines.ts';
import { findAccount, findKey, keyOf, sortedAccounts } from '../command/known-names.ts';
import { longWork } from '../command/long-work.ts';
import * as option from '../command/options.ts';
import { webhookOptions } from './webhook-commands.ts';

const DEFAULT_RATE_LIMIT = 60;

const issue = command({
  usage: 'issue <account>',
  summary: 'issue a key; the key and its webhook secret are shown only once',
  example: 'fuel key issue 7 --label ERP --allow 203.0.113.0/24,2001:db8::7',
  args: [readId],
  options: {
    label: option.valued('text', 'what the key is for', String),
    allow: option.valued(
      'cidrs',
      'addresses it may be used from (needed in production)',
      option.readAllowList,
    ),
    rateLimit: option.withDefault(option.count('requests in 60 seconds'), DEFAULT_RATE_LIMIT),
    driverMobile: option.flag("show the drivers' mobile numbers"),
    webhookUrl: option.valued('url', 'where transactions are pushed to', String),
  },
  changes: true,
  async work(
    { config, engines, clock, writer, out },
    [accountId],
    { label, allow, rateLimit, driverMobile, webhookUrl },
  ) {
    if (webhookUrl !== undefined) await engines.bind(); // before the master key is read: a lost one must not be replaced
    const webhook = webhookUrl === undefined ? null : webhookOptions(config, clock, webhookUrl);
    const issued = await issueKey(writer(), {
      accountId,
      environment: config.FUEL_ENVIRONMENT,
      label: label ?? null,
      allowList: allow ?? [],
      rateLimit,
      driverMobile: driverMobile === true,
      webhook,
    });
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
  },
});

const list = command({
  usage: 'list',
  summary: 'list keys with their webhooks, without secrets, by account and in the order of their issue',
  example: 'fuel key list --edge --json',
  options: {
    account: option.id('keys of this account'),
    edge: option.flag('only what an external gateway needs for the edge checks'),
  },
  async work({ engines, out }, _, { account: wanted, edge }) {
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
  },
});

const show = command({
  usage: 'show <prefix>',
  summary: 'show one key, without its secret',
  example: 'fuel key show a1b2c3d4e5',
  args: [readPrefix],
  async work({ engines, out }, [prefix]) {
    const { entry, key: found } = await findKey(engines, prefix);
    const document = keyAnswer(entry.id, found);
    out.answer(document, [facts(KEY_COLUMNS, document)]);
  },
});

const off = command({
  usage: 'off <prefix>',
  summary: 'switch a key off at once: it answers 401 from then on',
  example: 'fuel key off a1b2c3d4e5 --reason "leaked in a public repository" --wait',
  args: [readPrefix],
  options: { reason: option.reason },
  changes: true,
  work: (session, [prefix], { reason }) =>
    change(session, prefix, (of) => ({ type: 'SwitchKeyOff', ...of, reason })),
});

const on = command({
  usage: 'on <prefix>',
  summary: 'switch a key on again',
  example: 'fuel key on a1b2c3d4e5',
  args: [readPrefix],
  changes: true,
  work: (session, [prefix]) => change(session, prefix, (of) => ({ type: 'SwitchKeyOn', ...of })),
});

const allow = command({
  usage: 'allow <prefix> <cidrs>',
  summary: 'replace the addresses a key may be used from',
  example: 'fuel key allow a1b2c3d4e5 203.0.113.0/24,198.51.100.7',
  args: [readPrefix, option.readAllowList],
  changes: true,
  work: (session, [prefix, allowList]) =>
    change(session, prefix, (of) => ({ type: 'SetKeyAllowList', ...of, allowList })),
});

const rateLimit = command({
  usage: 'rate-limit <prefix> <n>',
  summary: 'set how many requests a key may make in 60 seconds',
  example: 'fuel key rate-limit a1b2c3d4e5 300',
  args: [readPrefix, option.readCount],
  changes: true,
  work: (session, [prefix, rateLimit]) =>
    change(session, prefix, (of) => ({ type: 'SetKeyRateLimit', ...of, rateLimit })),
});

const driverMobile = command({
  usage: 'driver-mobile <prefix> <on|off>',
  summary: "show or leave out the drivers' mobile numbers",
  example: 'fuel key driver-mobile a1b2c3d4e5 on',
  args: [readPrefix, option.readOnOff],
  changes: true,
  work: (session, [prefix, enabled]) =>
    change(session, prefix, (of) => ({ type: 'SetKeyDriverMobile', ...of, enabled })),
});

const rewrap = command({
  usage: 'rewrap',
  summary: 'encrypt webhook secrets anew under the first key of FUEL_MASTER_KEY, so that the others can go',
  example: 'FUEL_MASTER_KEY=new,old fuel key rewrap',
  changes: true,
  async work({ config, engines, writer, out }) {
    requireStore(config, engines);
    await engines.bind(); // before the master key is read: a lost one must not be replaced
    const masterKeys = openMasterKeys(config);
    const directory = await loadDirectory(engines.store(), engines.directory());
    return longWork(out, { again: 'run it again' }, async ({ onRefused, ...parts }) => {
      const onUnreadable = (prefix: string, reason: string): void => onRefused(`key ${prefix}`, reason);
      const counts = await rewrapSecrets(writer(), { directory, masterKeys, onUnreadable, ...parts });
      const [first, ...others] = masterKeys.ids();
      if (counts.rewrapped === 0 && others.length > 0)
        out.note(
          `the first key of FUEL_MASTER_KEY, ${first}, encrypts: to change to another, put that first`,
        );
      return counts;
    });
  },
});

export const addKeyCommands = noun({
  name: 'key',
  summary: 'API keys: how customers authenticate',
  example: 'fuel key list --account 7',
  commands: [issue, list, show, off, on, allow, rateLimit, driverMobile, rewrap],
});

async function change(session: Session, prefix: string, commandOf: KeyChange): Promise<void> {
  const { changed, accountId, key } = await changeKey(session, prefix, commandOf);
  printChange(session, changed, keyAnswer(accountId, key));
}
