import type { VNode } from 'preact';
import { noAccessReason, webhookState } from '../../../accounts/account-state.ts';
import type { Account, AccountKey } from '../../../domain/account.ts';
import type { AccountEvent } from '../../../domain/account-events.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { type AccountEntry, accountTail } from '../figures/account-tail.ts';
import { gatesOf } from '../figures/gates.ts';
import { commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { table } from '../html/table.ts';
import { badge, links, plural, state, time } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

/** Of corporates and keys that one page shows. */
const MAX_ROWS = 100;
const MAX_EVENTS = 50;

export async function accountPage({ parts, name }: PageContext): Promise<Page> {
  const id = Number(name);
  const entry = /^\d{1,16}$/.test(name) ? parts.directory.account(id) : undefined;
  if (entry === undefined) {
    return notFound(`Account ${name}`, 'No account with this id was opened.', [
      { what: 'Every account', words: ['account', 'list'] },
    ]);
  }
  const events = await accountTail(parts.store, entry);
  const { account, unreadable } = entry;
  const nowMs = parts.clock.now();
  return {
    title: `Account ${id}`,
    main: html`<h1>Account ${id} ${account === undefined ? badge('closed', 'bad') : html`${line(account.name)} ${accessBadge(account, nowMs)}`}</h1>
      ${unreadable === null ? null : html`<section class="problem"><p>Nothing of it is served, since the event at ${unreadable.position} can not be read: ${line(unreadable.reason, 1_000)}</p></section>`}
      <section>${gatesTable(gatesOf({ account, statusOf: parts.statusOf, nowMs, events }))}</section>
      <p><a href=${`/deliveries?account=${id}`}>Its deliveries</a>, <a href=${`/deliveries?account=${id}&state=failed`}>those that failed</a></p>
      ${account === undefined ? null : contents(account)}
      <section>${eventsTable(events)}</section>
      ${commands([
        { what: 'The same on the command line', words: ['account', 'show', String(id)] },
        account?.integrationEnabled === false
          ? { what: 'Switch the integration on', words: ['account', 'integration', String(id), 'on'] }
          : {
              what: 'Switch the integration off',
              words: ['account', 'integration', String(id), 'off', '--reason', 'WHY'],
            },
        {
          what: 'Renew or set a charging profile',
          words: [
            'account',
            'profile',
            String(id),
            '--profile',
            [...(account?.profiles.keys() ?? [])].at(-1) ?? 'NAME',
            '--from',
            formatDateTime(nowMs - (nowMs % 86_400_000)),
          ],
        },
        { what: 'Issue a key', words: ['key', 'issue', String(id), '--label', 'LABEL'] },
        { what: 'Everything that happened to it', words: ['audit', '--account', String(id), '--newest'] },
      ])}`,
  };
}

function accessBadge(account: Account, nowMs: number): VNode {
  return noAccessReason(account, nowMs) === undefined ? badge('access', 'good') : badge('no access', 'warn');
}

export function gatesTable(gates: ReturnType<typeof gatesOf>): VNode {
  return table({
    caption: 'Access as it stands now',
    columns: ['Check', 'Now', 'Requests get', 'Since', 'Why'],
    rows: gates.map(({ check, answer, sinceMs, why }) => ({
      id: `gate-${check}`,
      cells: [
        check,
        answer === undefined ? badge('passes', 'good') : badge('refuses', 'bad'),
        answer === undefined ? 'passes' : `answers ${answer}`,
        sinceMs === undefined ? 'unknown' : time(sinceMs),
        line(why),
      ],
    })),
    empty: 'none',
  });
}

function contents({ profiles, keys, corporates, groups }: Account): VNode {
  const cut = (total: number): VNode | null =>
    total > MAX_ROWS
      ? html`<p class="note">The first ${MAX_ROWS} of ${total.toLocaleString('en-US')}.</p>`
      : null;
  return html`<div class="grid">
      <section>${table({
        caption: 'Charging profiles',
        columns: ['Profile', 'From', 'To'],
        rows: [...profiles].slice(0, MAX_ROWS).map(([profile, { fromMs, toMs }]) => ({
          cells: [line(profile), time(fromMs), toMs === null ? 'open-ended' : time(toMs)],
        })),
        empty: 'It has no charging profile.',
      })}${cut(profiles.size)}</section>
      <section>${keysTable([...keys.values()].slice(0, MAX_ROWS))}${cut(keys.size)}</section>
    </div>
    <section>${table({
      caption: plural(corporates.size, 'corporate'),
      columns: ['Id', 'Name', 'Group'],
      rows: [...corporates].slice(0, MAX_ROWS).map(([id, { name, groupId }]) => ({
        cells: [
          id,
          line(name),
          groupId === null ? 'none' : `${groupId} ${line(groups.get(groupId)?.name ?? '')}`,
        ],
      })),
      empty: 'It has no corporate.',
    })}${cut(corporates.size)}</section>`;
}

function keysTable(keys: readonly AccountKey[]): VNode {
  return table({
    caption: 'Keys',
    columns: ['Key', 'Label', 'State', 'Webhook'],
    rows: keys.map(({ prefix, label, active, webhook }) => ({
      id: `key-${prefix}`,
      cells: [
        links.key(prefix),
        line(label ?? ''),
        state(active ? 'on' : 'off'),
        webhook === null ? 'none' : html`${state(webhookState(webhook).state)} ${links.webhook(prefix)}`,
      ],
    })),
    empty: 'It has no key.',
  });
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

export function eventsTable(events: readonly AccountEntry[]): VNode {
  return table({
    caption: `Its newest events, at most ${MAX_EVENTS}`,
    columns: ['Time', 'Event', 'By', 'Command', 'Details'],
    rows: events.slice(0, MAX_EVENTS).map(({ revision, atMs, type, actor, command, data }) => ({
      id: `event-${revision}`,
      cells: [
        time(atMs),
        line(type),
        line(actor ?? 'unknown'),
        line(command ?? 'unknown'),
        SHOWN.flatMap((name) => {
          const value = data[name];
          return typeof value === 'string' || typeof value === 'number'
            ? [html`<span>${name.replaceAll('_', ' ')} ${line(String(value), 120)} </span>`]
            : [];
        }),
      ],
    })),
    empty: 'None.',
  });
}
