import type { AccountEvent } from '../../../domain/account-events.ts';
import { DAY_MS, formatDateTime } from '../../../domain/values/date-time.ts';
import { authorOf } from '../../../event-store/codec.ts';
import { accountAnswer, accountLine, accountSections, accountState } from '../../answers/account.ts';
import { type Column, facts, state, type Table, table, time } from '../../answers/columns.ts';
import { keyAnswer, USED_KEY_COLUMNS, usedKeyAnswer } from '../../answers/key.ts';
import { known } from '../figures/known.ts';
import { accountTail, type LoggedEvent } from '../figures/tails.ts';
import { cmd } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import { notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, note, problem } from '../html/parts.ts';
import { gatesTable } from './gates.ts';
import { dayForm } from './transaction.ts';

const MAX_EVENTS = 50;

export async function accountPage({ parts, name }: PageContext): Promise<Page> {
  const id = Number(name);
  const entry = /^\d{1,16}$/.test(name) ? parts.directory.account(id) : undefined;
  if (entry === undefined) {
    const commands = [cmd('Every account')`account list`];
    return notFound(`Account ${name}`, 'No account with this id was opened.', { commands });
  }
  const events = await accountTail(parts.store, entry);
  const { account } = entry;
  const nowMs = parts.clock.now();
  const profile = [...(account?.profiles.keys() ?? [])].at(-1) ?? 'NAME';
  const today = formatDateTime(nowMs - (nowMs % DAY_MS));
  const [first, ...others] = accountSections(accountAnswer(entry, nowMs));
  return {
    title: `Account ${id}`,
    heading: [`Account ${id} ${line(account?.name ?? '')}`, accountState(accountLine(entry, nowMs))],
    parts: [
      first === undefined || account !== undefined ? (first ?? null) : problem(content(first)),
      gatesTable({ account, nowMs, events }),
      html`<p><a href=${`/deliveries?account=${id}`}>Its deliveries</a>, <a href=${`/deliveries?account=${id}&state=failed`}>those that failed</a></p>`,
      dayForm(id, today.slice(0, 10)),
      ...others,
      eventsTable(events),
    ],
    commands: [
      cmd('The same on the command line')`account show ${id}`,
      ...(account?.closed
        ? [cmd('Let it be changed again')`account reopen ${id} --reason WHY`]
        : [
            account?.integration.enabled === false
              ? cmd('Switch the integration on')`account integration ${id} on`
              : cmd('Switch the integration off')`account integration ${id} off --reason WHY`,
            cmd(
              'Renew or set a charging profile',
            )`account profile ${id} --profile ${profile} --from ${today}`,
            cmd('Issue a key')`key issue ${id} --label LABEL`,
            cmd('Close it')`account close ${id} --reason WHY`,
          ]),
      cmd('Everything that happened to it')`audit --account ${id} --newest`,
    ],
  };
}

type DataMember<E> = E extends { readonly data: infer Data } ? keyof Data : never;

/** What is shown of an event's data: nothing secret, and nothing that grows. */
const SHOWN: readonly DataMember<AccountEvent>[] = [
  'prefix',
  'reason',
  'url',
  'profile',
  'from',
  'to',
  'name',
  'corporate_id',
  'corporate_group_id',
  'failed_in_a_row',
];

export function eventsTable(events: readonly LoggedEvent[]): Table {
  return loggedTable(`Its newest events, at most ${MAX_EVENTS}`, events.slice(0, MAX_EVENTS), SHOWN);
}

/** With the text and numbers of their data, or of these members of it, which may be lists too. */
export function loggedTable(caption: string, of: readonly LoggedEvent[], names?: readonly string[]): Table {
  const isShown = (value: unknown): boolean =>
    ['string', 'number'].includes(typeof value) || (names !== undefined && Array.isArray(value));
  const detailsOf = ({ data }: LoggedEvent): string[] =>
    (names ?? Object.keys(data))
      .filter((name) => isShown(data[name]))
      .map((name) => `${name.replaceAll('_', ' ')} ${line([data[name]].flat().join(', '), 120)}`);
  const columns: readonly Column<LoggedEvent>[] = [
    { head: 'Time', cell: ({ atMs }) => time(atMs) },
    { head: 'Event', cell: ({ type }) => type },
    { head: 'By', cell: (of) => authorOf({ metadata: of }) },
    { head: 'Command', cell: ({ command }) => command ?? 'unknown' },
    { head: 'Details', cell: detailsOf },
  ];
  return table(caption, columns, { of, idOf: ({ revision }) => revision, empty: 'None.' });
}

/** A key as an operator may see it: no hash, no secret. */
export async function keyPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined)
    return notFound(`Key ${prefix}`, 'No key has this prefix.', { commands: [cmd('Every key')`key list`] });
  const { key, entry } = found;
  const { environment, active, allowList, rateLimit } = key;
  const isForeign = environment !== parts.environment;
  const events = await accountTail(parts.store, entry);
  const uses = await known(
    () => parts.engines.requests().lastUses([prefix]),
    () => parts.clock.now(),
  );
  const gates = { account: entry.account, key, nowMs: parts.clock.now(), events };
  return {
    title: `Key ${prefix}`,
    heading: [`Key ${prefix}`, state(active ? 'on' : 'off')],
    parts: [
      facts(USED_KEY_COLUMNS, usedKeyAnswer(keyAnswer(entry.id, key), uses.value?.get(prefix))),
      'unknown' in uses ? note(`When it was used last is not known: ${uses.unknown}.`) : null,
      isForeign ? note(`Not known to this service, which serves ${parts.environment}.`) : null,
      gatesTable(gates),
      eventsTable(events.filter(({ data }) => data.prefix === prefix)),
    ],
    commands: [
      cmd('The same on the command line')`key show ${prefix}`,
      active
        ? cmd('Switch it off at once')`key off ${prefix} --reason WHY --wait`
        : cmd('Switch it on again')`key on ${prefix}`,
      cmd('Change its addresses')`key allow ${prefix} ${allowList.join(',') || '203.0.113.0/24'}`,
      cmd('Change its rate limit')`key rate-limit ${prefix} ${rateLimit}`,
      cmd('What was asked for with it')`key requests ${prefix}`,
      cmd('Everything that happened to it')`audit --key ${prefix} --newest`,
    ],
  };
}
