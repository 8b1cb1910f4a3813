import type { VNode } from 'preact';
import { type Column, link, state, table, time } from '../../answers/columns.ts';
import { MAX_FAILING } from '../../checks/accounts.ts';
import type { AccountLists, WebhookRef } from '../figures/account-lists.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, type Page, type PageContext, unavailable } from '../html/layout.ts';
import { href, next, note, number, orUnknown, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
/** How many that need attention stand before all others on the first page. */
const WORST_SHOWN = 25;
const STATES = ['disabled', 'failing', 'active'] as const;

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage({ parts, figures, query }: PageContext): Promise<Page> {
  const { after } = query;
  const wanted = STATES.find((state) => state === query.state);
  if (query.state && wanted === undefined) {
    const fault = `${query.state} is no state of a webhook: they are ${STATES.join(', ')}`;
    return malformed('Webhooks', [fault]);
  }
  const { directory } = parts;
  const [lanes, lists] = await Promise.all([figures.failing(), figures.lists()]);
  if ('unknown' in lists) return unavailable(lists.unknown);
  const streaks = new Map((lanes.value ?? []).map((lane) => [lane.prefix, lane]));
  const { disabled, webhooks } = lists.value;
  const failing = [...streaks.keys()].map((prefix) => ({
    prefix,
    accountId: directory.key(prefix)?.entry.id ?? 0,
  }));
  const apart = new Set([...disabled, ...failing].map(({ prefix }) => prefix));
  const others = webhooks.filter(({ prefix }) => !apart.has(prefix));
  const page =
    wanted === 'disabled' || wanted === 'failing'
      ? pageOf({ disabled, failing }[wanted], after)
      : pageOf(others, after, true);
  const first = wanted === undefined && after === undefined ? [disabled, failing] : [];
  const shown = [...first.flatMap((refs) => refs.slice(0, WORST_SHOWN)), ...page.shown];
  const isCut = first.some((refs) => refs.length > WORST_SHOWN);
  const listedOf = ({ prefix, accountId }: WebhookRef): Listed => {
    const { key, entry } = directory.key(prefix) ?? {};
    const [webhook, streak] = [key?.webhook, streaks.get(prefix)];
    const of = { prefix, accountId, account: entry?.account?.name ?? '', url: webhook?.url ?? 'none' };
    const off = webhook?.disabled;
    if (off != null) return { ...of, state: 'disabled', sinceMs: off.sinceMs, why: off.reason };
    if (streak === undefined) return { ...of, state: 'active', sinceMs: webhook?.setAtMs, why: '' };
    const why = `${streak.failedInARow} failed in a row; ${streak.lastAnswers[0] ?? 'unknown'}`;
    return { ...of, state: 'failing', sinceMs: streak.failingSinceMs, why };
  };
  return {
    title: 'Webhooks',
    parts: [
      filters(
        wanted,
        lists.value,
        orUnknown(lanes, () => number(failing.length, MAX_FAILING)),
      ),
      table('Webhooks of active keys', COLUMNS, {
        of: shown.map(listedOf),
        idOf: ({ prefix }) => prefix,
        empty: 'No webhook is in this state.',
      }),
      isCut
        ? note(
            `Of those that are switched off, and of those that fail, the first ${WORST_SHOWN}: the links above show all.`,
          )
        : null,
      next('/webhooks', { state: wanted, after: page.next }, `Next ${ON_A_PAGE}`),
    ],
    commands: [
      cmd('Every key with its webhook')`key list`,
      cmd('Accounts with the worst state of their webhooks')`account list`,
    ],
  };
}

/**
 * What stands after a webhook. Where that is gone: in a list by account what is of the accounts after its own, in others
 * the beginning.
 */
function pageOf(refs: readonly WebhookRef[], after: string | undefined, isByAccount = false) {
  const accountId = Number(after?.split('-')[0] ?? -1);
  const at = refs.findIndex((ref) => nameOf(ref) === after);
  const next = isByAccount ? refs.findIndex((ref) => ref.accountId > accountId) : 0;
  const from = at >= 0 ? at + 1 : next >= 0 ? next : refs.length;
  const shown = refs.slice(from, from + ON_A_PAGE);
  const last = shown.at(-1);
  return { shown, next: last !== undefined && refs.length > from + ON_A_PAGE ? nameOf(last) : undefined };
}

function nameOf({ accountId, prefix }: WebhookRef): string {
  return `${accountId}-${prefix}`;
}

function filters(wanted: string | undefined, { webhooks, disabled }: AccountLists, failing: Shown): VNode {
  const link = (name: string | undefined, text: Shown): VNode =>
    html`<a href=${href('/webhooks', { state: name })} aria-current=${wanted === name ? 'true' : undefined}>${show(text)}</a>`;
  return html`<p>
    ${link(undefined, `all ${number(webhooks.length)}`)} · ${link('disabled', `switched off ${number(disabled.length)}`)} ·
    ${link('failing', ['failing', failing])} · ${link('active', 'the others')}
  </p>`;
}

/** What is listed of a webhook: whether it fails is not its account's to know. */
interface Listed extends WebhookRef {
  readonly account: string;
  readonly url: string;
  readonly state: (typeof STATES)[number];
  readonly sinceMs: number | null | undefined;
  readonly why: string;
}

const COLUMNS: readonly Column<Listed>[] = [
  { head: 'Key', cell: ({ prefix }) => link('webhook', prefix) },
  { head: 'State', cell: ({ state: name }) => state(name) },
  { head: 'Since', cell: ({ sinceMs }) => time(sinceMs) },
  { head: 'Why', cell: ({ why }) => why },
  { head: 'Account', cell: ({ accountId, account }) => [link('account', accountId), account] },
  { head: 'URL', cell: ({ url }) => url },
];
