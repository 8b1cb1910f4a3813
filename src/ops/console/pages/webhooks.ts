import type { VNode } from 'preact';
import type { LaneStreak } from '../../../deliveries/queue/bounded-reads.ts';
import { type AccountLists, firstAfter, type WebhookRef } from '../figures/account-index.ts';
import { failingWebhooks } from '../figures/attention.ts';
import { MAX_FAILING } from '../figures/snapshot.ts';
import { commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { malformed } from '../html/problems.ts';
import { type TableRow, table } from '../html/table.ts';
import { count, links, state, time, unknown } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

const ON_A_PAGE = 50;
const STATES = ['disabled', 'failing', 'active'] as const;
const COLUMNS = ['Key', 'State', 'Since', 'Why', 'Account', 'URL'];

type ListedState = (typeof STATES)[number];

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage(context: PageContext): Promise<Page> {
  const { parts, snapshots, query } = context;
  const wanted = query.state === '' ? undefined : query.state;
  if (wanted !== undefined && !STATES.includes(wanted as ListedState)) {
    return malformed('Webhooks', [`${wanted} is no state of a webhook: they are ${STATES.join(', ')}`]);
  }
  const { lists, failing } = await snapshots.get();
  const fails = 'unknown' in failing ? [] : failingWebhooks(failing.value, parts);
  const shows = (name: ListedState): boolean => wanted === undefined || wanted === name;
  const isFirst = query.after === undefined;
  const page = shows('active') ? othersOf(lists, { after: query.after, failing: fails }) : undefined;
  const rows: TableRow[] = [
    ...(isFirst && shows('disabled')
      ? lists.disabled.slice(0, MAX_FAILING).map((ref) => rowOf(context, ref))
      : []),
    ...(isFirst && shows('failing') ? fails.map((lane) => rowOf(context, refOf(context, lane), lane)) : []),
    ...(page?.shown ?? []).map((ref) => rowOf(context, ref)),
  ];
  return {
    title: 'Webhooks',
    main: html`<h1>Webhooks</h1>
      ${filters(wanted, lists, 'unknown' in failing ? unknown(failing.unknown) : count(fails.length, MAX_FAILING))}
      <section>
        ${table({ caption: 'Webhooks of active keys', columns: COLUMNS, rows, empty: 'No webhook is in this state.' })}
        ${page?.next === undefined ? null : html`<p class="pages"><a href=${`/webhooks?${wanted === undefined ? '' : `state=${wanted}&`}after=${page.next}`}>Next ${ON_A_PAGE}</a></p>`}
      </section>
      ${commands([
        { what: 'Every key with its webhook', words: ['key', 'list'] },
        { what: 'Accounts with the worst state of their webhooks', words: ['account', 'list'] },
      ])}`,
  };
}

function filters(wanted: string | undefined, { webhooks, disabled }: AccountLists, failing: unknown): VNode {
  const link = (name: string | undefined, text: unknown): VNode =>
    html`<a href=${name === undefined ? '/webhooks' : `/webhooks?state=${name}`} aria-current=${wanted === name ? 'true' : undefined}>${text}</a>`;
  return html`<p>
    ${link(undefined, html`all ${count(webhooks.length)}`)} · ${link('disabled', html`switched off ${count(disabled.length)}`)} ·
    ${link('failing', html`failing ${failing}`)} · ${link('active', 'the others')}
  </p>`;
}

/** The others from a place on: neither switched off nor failing. */
function othersOf(
  { webhooks, disabled }: AccountLists,
  { after, failing }: { readonly after: string | undefined; readonly failing: readonly LaneStreak[] },
): { readonly shown: readonly WebhookRef[]; readonly next: string | undefined } {
  const apart = new Set([...disabled, ...failing].map(({ prefix }) => prefix));
  const shown: WebhookRef[] = [];
  for (let at = placeAfter(webhooks, after); at < webhooks.length; at++) {
    const ref = webhooks[at];
    if (ref === undefined || apart.has(ref.prefix)) continue;
    if (shown.length === ON_A_PAGE) {
      const last = shown.at(-1);
      return { shown, next: last && `${last.accountId}-${last.prefix}` };
    }
    shown.push(ref);
  }
  return { shown, next: undefined };
}

/** Continues with the account that follows where the webhook itself is gone meanwhile. */
function placeAfter(webhooks: readonly WebhookRef[], after: string | undefined): number {
  if (after === undefined) return 0;
  const [id = '', prefix] = after.split('-');
  const accountId = Number(id);
  const first = firstAfter(webhooks, (ref) => ref.accountId >= accountId);
  for (let at = first; webhooks[at]?.accountId === accountId; at++) {
    if (webhooks[at]?.prefix === prefix) return at + 1;
  }
  return firstAfter(webhooks, (ref) => ref.accountId > accountId);
}

function refOf({ parts }: PageContext, { prefix }: LaneStreak): WebhookRef {
  return { prefix, accountId: parts.directory.key(prefix)?.entry.id ?? 0 };
}

function rowOf({ parts }: PageContext, { accountId, prefix }: WebhookRef, streak?: LaneStreak): TableRow {
  const found = parts.directory.key(prefix);
  const webhook = found?.key.webhook ?? null;
  const off = webhook?.disabled ?? null;
  const name = off !== null ? 'disabled' : streak === undefined ? 'active' : 'failing';
  const why =
    off?.reason ??
    (streak && `${streak.failedInARow} failed in a row; ${streak.lastAnswers[0] ?? 'unknown'}`) ??
    '';
  return {
    id: `webhook-${prefix}`,
    cells: [
      links.webhook(prefix),
      state(name),
      time(off?.sinceMs ?? (streak === undefined ? webhook?.setAtMs : streak.failingSinceMs)),
      line(why),
      html`${links.account(accountId)} ${line(found?.entry.account?.name ?? '', 60)}`,
      line(webhook?.url ?? 'none', 120),
    ],
  };
}
