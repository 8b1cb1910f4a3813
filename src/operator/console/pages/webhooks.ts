import type { VNode } from 'preact';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { MAX_FAILING } from '../../checks/accounts.ts';
import type { AccountLists, WebhookRef } from '../figures/account-lists.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, type Page, type PageContext, unavailable } from '../html/layout.ts';
import { href, listOf, next, number, orUnknown, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const STATES = ['disabled', 'failing', 'active'] as const;

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage({ parts, figures, query }: PageContext): Promise<Page> {
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
  const off = new Set(disabled.map(({ prefix }) => prefix));
  const failing = [...streaks.keys()]
    .filter((prefix) => !off.has(prefix))
    .map((prefix) => ({ prefix, accountId: directory.key(prefix)?.entry.id ?? 0 }));
  const active = webhooks.filter(({ prefix }) => !off.has(prefix) && !streaks.has(prefix));
  const of: readonly WebhookRef[] =
    wanted === undefined ? [...disabled, ...failing, ...active] : { disabled, failing, active }[wanted];
  const from = of.findIndex(({ prefix }) => prefix === query.after) + 1; // from the first, where that is gone
  const shown = of.slice(from, from + ON_A_PAGE);
  const after = of.length > from + ON_A_PAGE ? shown.at(-1)?.prefix : undefined;
  const rowOf = ({ prefix, accountId }: WebhookRef) => {
    const { key, entry } = directory.key(prefix) ?? {};
    const [webhook, streak] = [key?.webhook, streaks.get(prefix)];
    const of = { account: accountId, name: entry?.account?.name ?? '', url: webhook?.url ?? 'none' };
    const since = (atMs: number | null | undefined) => (atMs == null ? null : formatDateTime(atMs));
    const off = webhook?.disabled;
    if (off != null)
      return { prefix, state: 'disabled', since: since(off.sinceMs), reason: off.reason, ...of };
    if (streak === undefined)
      return { prefix, state: 'active', since: since(webhook?.setAtMs), reason: null, ...of };
    const reason = `${streak.failedInARow} failed in a row; ${streak.lastAnswers[0] ?? 'unknown'}`;
    return { prefix, state: 'failing', since: since(streak.failingSinceMs), reason, ...of };
  };
  return {
    title: 'Webhooks',
    parts: [
      filters(
        wanted,
        lists.value,
        orUnknown(lanes, () => number(failing.length, MAX_FAILING)),
      ),
      listOf('Webhooks of active keys, worst first', shown.map(rowOf)),
      next('/webhooks', { state: wanted, after }, `Next ${ON_A_PAGE}`),
    ],
    commands: [
      cmd('Every key with its webhook')`key list`,
      cmd('Accounts with the worst state of their webhooks')`account list`,
    ],
  };
}

function filters(wanted: string | undefined, { webhooks, disabled }: AccountLists, failing: Shown): VNode {
  const link = (name: string | undefined, text: Shown): VNode =>
    html`<a href=${href('/webhooks', { state: name })} aria-current=${wanted === name ? 'true' : undefined}>${show(text)}</a>`;
  return html`<p>
    ${link(undefined, `all ${number(webhooks.length)}`)} · ${link('disabled', `switched off ${number(disabled.length)}`)} ·
    ${link('failing', ['failing', failing])} · ${link('active', 'the others')}
  </p>`;
}
