import { Argument } from '@commander-js/extra-typings';
import { switchOffUnread } from '../../../accounts/change-account.ts';
import { openMasterKeys } from '../../../accounts/master-key.ts';
import { loadAccount } from '../../../accounts/rows/load-account.ts';
import { keyIn } from '../../../accounts/rows/rows-of.ts';
import { everyKey, unreadableAccounts } from '../../../accounts/rows/stored-account.ts';
import { isUnavailable, reasonOf } from '../../../base/errors.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../domain/values/date-time.ts';
import type { LastUse } from '../../../pull/request-journal.ts';
import { readId, requireRange } from '../../answers/filters.ts';
import { edgeKeyAnswer, type KeyAnswer, keyAnswer, requestAnswer, usedKeyAnswer } from '../../answers/key.ts';
import { issueKey } from '../../keys/issue-key.ts';
import { rewrapSecrets } from '../../keys/webhook-secrets.ts';
import { changeKey, type KeyChange, printChange } from '../command/change.ts';
import { command, noun, type Session } from '../command/command.ts';
import { currentAccounts, findKey, keyOf, knownKey, requireAccount } from '../command/known-names.ts';
import { longWork } from '../command/long-work.ts';
import * as option from '../command/options.ts';
import { onKey, secretAnswer, secretText, webhookOptions } from './webhook-commands.ts';

const DEFAULT_RATE_LIMIT = 60;
const KEYS_PER_READ = 1_000;

const issue = command({
  name: 'issue',
  summary: 'issue a key; the key and its webhook secret are shown only once',
  example: 'fuel key issue 7 --label ERP --allow 203.0.113.0/24,2001:db8::7',
  syntax: (it) =>
    it
      .argument('<account>', 'the account', readId)
      .option('--label <text>', 'what the key is for', String)
      .option(
        '--allow <cidrs>',
        'the addresses and ranges that may use it, separated by commas; required in production',
        option.readAllowList,
      )
      .option('--rate-limit <n>', 'requests per 60 seconds', option.readCount, DEFAULT_RATE_LIMIT)
      .option('--driver-mobile', "include the drivers' mobile numbers")
      .option('--webhook-url <url>', 'the URL that transactions are pushed to', String),
  changes: true,
  async work({ config, writer, out }, [accountId], { label, allow, rateLimit, driverMobile, webhookUrl }) {
    const webhook = webhookUrl === undefined ? null : webhookOptions(config, webhookUrl);
    const issued = await issueKey(writer(), {
      accountId,
      environment: config.FUEL_ENVIRONMENT,
      label: label ?? null,
      allowList: allow ?? [],
      rateLimit,
      driverMobile: driverMobile === true,
      webhook,
    });
    const secret = secretAnswer(issued.webhookSecret);
    if (issued.warning !== null) out.note(issued.warning);
    const next =
      webhook === null
        ? `fuel account show ${accountId}, which says if it has access`
        : `fuel webhook test ${issued.prefix}`;
    await out.secret(
      { key: issued.key, ...secret, ...keyAnswer(accountId, keyOf(issued.account, issued.prefix)) },
      `key: ${issued.key}${secretText(secret)}\nKeep them now: they are never shown again. Next: ${next}`,
      `the key ${issued.prefix} was issued, but could not be written to standard output and is lost. Switch it off ` +
        `(\`fuel key off ${issued.prefix}\`) and issue another`,
    );
  },
});

const list = command({
  name: 'list',
  summary: 'list keys and their webhooks, without secrets, by account and prefix',
  example: 'fuel key list --edge --json',
  lists: { what: 'keys' },
  syntax: (it) =>
    it
      .option('--account <id>', 'only keys of this account', readId)
      .option('--edge', 'only what an external gateway needs for its checks'),
  async work(session, _, { account: wanted, edge }) {
    const { out } = session;
    const tables = await currentAccounts(session);
    if (wanted !== undefined) await requireAccount(tables, wanted);
    for await (const { id, unreadable } of unreadableAccounts(tables))
      if (wanted === undefined || wanted === id)
        out.note(`Account ${id} can't be read, so its keys are not listed: ${unreadable}`);
    let keys: KeyAnswer[] = [];
    for await (const row of everyKey(tables, wanted)) {
      if (row.unreadable !== null) continue;
      if (edge) await out.row(edgeKeyAnswer(keyIn(row)));
      else if (keys.push(keyAnswer(row.account_id, keyIn(row))) === KEYS_PER_READ) {
        await printUsed(keys, session);
        keys = [];
      }
    }
    await printUsed(keys, session);
  },
});

const show = command({
  name: 'show',
  summary: 'show a key, without its secret',
  example: 'fuel key show a1b2c3d4e5',
  syntax: onKey,
  async work(session, [prefix]) {
    const { accountId, key } = await findKey(session, prefix);
    const uses = await lastUses([prefix], session);
    session.out.answer(usedKeyAnswer(keyAnswer(accountId, key), uses.get(prefix)));
  },
});

const requests = command({
  name: 'requests',
  summary: 'list the requests made with a key, newest first: the address, the query and the answer',
  example: 'fuel key requests a1b2c3d4e5 --since 2h',
  lists: { what: 'requests' },
  syntax: (it) => onKey(it).addOption(option.since('made')).addOption(option.until('made')),
  async work(session, [prefix], options) {
    const { engines, out } = session;
    requireRange(options);
    await findKey(session, prefix);
    const range = { sinceMs: options.since ?? EARLIEST_MS, untilMs: options.until ?? LATEST_MS };
    for await (const row of engines.requests().requestsOf(prefix, range)) await out.row(requestAnswer(row));
  },
});

const off = command({
  name: 'off',
  summary: 'switch a key off: from now on its requests are answered with 401',
  example: 'fuel key off a1b2c3d4e5 --reason "leaked in a public repository" --wait',
  syntax: onKey,
  changes: true,
  asksWhy: () => true,
  async work(session, [prefix], { reason }) {
    const { engines, writer, out } = session;
    const { accountId, key, unreadable } = await knownKey(session, prefix);
    const found = await loadAccount(engines.store(), accountId);
    const why = found === undefined ? unreadable : found.unreadable?.reason;
    if (why == null)
      return change(session, prefix, (of) => ({ type: 'SwitchKeyOff', ...of, reason }), SWITCHED_OFF);
    await switchOffUnread(writer(), { type: 'SwitchKeyOff', accountId, prefix, reason });
    out.note(`Account ${accountId} is not served at all, since it can't be read: ${why}`);
    printChange(session, true, keyAnswer(accountId, { ...key, active: false }), SWITCHED_OFF(prefix));
  },
});

const on = command({
  name: 'on',
  summary: 'switch a key on again',
  example: 'fuel key on a1b2c3d4e5',
  syntax: onKey,
  changes: true,
  work: (session, [prefix]) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'SwitchKeyOn', ...of }),
      (key) => `Switched on key ${key}`,
    ),
});

const allow = command({
  name: 'allow',
  summary: 'replace the addresses that may use a key',
  example: 'fuel key allow a1b2c3d4e5 203.0.113.0/24,198.51.100.7',
  syntax: (it) =>
    onKey(it).argument('<cidrs>', 'addresses and ranges, separated by commas', option.readAllowList),
  changes: true,
  work: (session, [prefix, allowList]) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'SetKeyAllowList', ...of, allowList }),
      (key) => `Key ${key} may be used from ${allowList.join(', ')}`,
    ),
});

const rateLimit = command({
  name: 'rate-limit',
  summary: 'set how many requests a key may make in 60 seconds',
  example: 'fuel key rate-limit a1b2c3d4e5 300',
  syntax: (it) => onKey(it).argument('<n>', 'requests per 60 seconds', option.readCount),
  changes: true,
  work: (session, [prefix, rateLimit]) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'SetKeyRateLimit', ...of, rateLimit }),
      (key) => `Key ${key} may make ${rateLimit} requests in 60 seconds`,
    ),
});

const driverMobile = command({
  name: 'driver-mobile',
  summary: "include or leave out the drivers' mobile numbers",
  example: 'fuel key driver-mobile a1b2c3d4e5 on',
  syntax: (it) => onKey(it).addArgument(new Argument('<on|off>').choices(['on', 'off'])),
  changes: true,
  work: (session, [prefix, to]) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'SetKeyDriverMobile', ...of, enabled: to === 'on' }),
      (key) => `Records for key ${key} ${to === 'on' ? 'include' : 'leave out'} the drivers' mobile numbers`,
    ),
});

const rewrap = command({
  name: 'rewrap',
  summary:
    're-encrypt webhook secrets with the first key of FUEL_MASTER_KEY, so that the old keys can be removed',
  example: 'FUEL_MASTER_KEY=new,old fuel key rewrap',
  changes: true,
  async work(session) {
    const { config, writer, out } = session;
    const masterKeys = openMasterKeys(config);
    const accounts = await currentAccounts(session);
    return longWork(session, async ({ onRefused, ...parts }) => {
      const onUnreadable = (prefix: string, reason: string): void => onRefused(`key ${prefix}`, reason);
      const counts = await rewrapSecrets(writer(), { accounts, masterKeys, onUnreadable, ...parts });
      const [first, ...others] = masterKeys.identities();
      if (counts.rewrapped === 0 && others.length > 0)
        out.note(
          `Secrets are encrypted with ${first?.master_key_id}, the first key of FUEL_MASTER_KEY. To change that, put another key first`,
        );
      return counts;
    });
  },
});

export const addKeyCommands = noun({
  name: 'key',
  summary: "manage customers' API keys",
  example: 'fuel key list --account 7',
  commands: [issue, list, show, requests, off, on, allow, rateLimit, driverMobile, rewrap],
});

async function printUsed(keys: readonly KeyAnswer[], session: Session): Promise<void> {
  if (keys.length === 0) return;
  const prefixes = keys.map(({ prefix }) => prefix);
  const uses = await lastUses(prefixes, session);
  for (const key of keys) await session.out.row(usedKeyAnswer(key, uses.get(key.prefix)));
}

/** Returns the last use of each key. If it can't be read, a note says so and the keys are listed without it. */
async function lastUses(
  prefixes: readonly string[],
  { engines, out }: Pick<Session, 'engines' | 'out'>,
): Promise<ReadonlyMap<string, LastUse>> {
  try {
    return await engines.requests().lastUses(prefixes);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    out.note(`The last use of the keys is unknown: ${reasonOf(error)}`);
    return new Map();
  }
}

const SWITCHED_OFF = (prefix: string): string =>
  `Switched off key ${prefix}. Its requests are answered with 401. To undo: fuel key on ${prefix}`;

async function change(
  session: Session,
  prefix: string,
  commandOf: KeyChange,
  done: (prefix: string) => string,
): Promise<void> {
  const { changed, accountId, key } = await changeKey(session, prefix, commandOf);
  printChange(session, changed, keyAnswer(accountId, key), done(prefix));
}
