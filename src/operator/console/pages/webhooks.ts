import type { VNode } from 'preact';
import type { LaneStreak } from '../../../push/queue/delivery-queue.ts';
import { type Column, link, state, table, time } from '../../answers/columns.ts';
import { failingWebhooks, MAX_FAILING } from '../../checks/accounts.ts';
import type { AccountLists, WebhookRef } from '../figures/account-index.ts';
import { cmd, commands } from '../html/commands.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { malformed } from '../html/problems.ts';
import { tableOf } from '../html/table.ts';
import { count, unknown } from '../html/values.ts';

const ON_A_PAGE = 50;
/** How many that need attention stand before all others on the first page. */
const WORST_SHOWN = 25;
const STATES = ['disabled', 'failing', 'active'] as const;

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage({ parts, snapshots, query }: PageContext): Promise<Page> {
  const given = query.state === '' ? undefined : query.state;
  const wanted = STATES.find((state) => state === given);
  if (given !== wanted) {
    return malformed('Webhooks', [`${given} is no state of a webhook: they are ${STATES.join(', ')}`]);
  }
  const [{ failing }, lists] = await Promise.all([snapshots.get(), snapshots.accounts.lists()]);
  const fails = 'unknown' in failing ? [] : failingWebhooks(failing.value, parts);
  const streaks = new Map(fails.map((lane) => [lane.prefix, lane]));
  const failingRefs = fails.map(({ prefix }) => ({
    prefix,
    accountId: parts.directory.key(prefix)?.entry.id ?? 0,
  }));
  const apart = new Set([...lists.disabled, ...failingRefs].map(({ prefix }) => prefix));
  const { after } = query;
  const page =
    wanted === 'disabled' || wanted === 'failing'
      ? pageOf(wanted === 'disabled' ? lists.disabled : failingRefs, after)
      : pageOf(
          lists.webhooks.filter(({ prefix }) => !apart.has(prefix)),
          after,
          true,
        );
  const first = wanted === undefined && after === undefined ? [lists.disabled, failingRefs] : [];
  const worst = first.flatMap((refs) => refs.slice(0, WORST_SHOWN));
  const more = first.some((refs) => refs.length > WORST_SHOWN);
  return {
    title: 'Webhooks',
    main: html`<h1>Webhooks</h1>
      ${filters(wanted, lists, 'unknown' in failing ? unknown(failing.unknown) : count(fails.length, MAX_FAILING))}
      <section>
        ${tableOf(
          table('Webhooks of active keys', COLUMNS, {
            of: [...worst, ...page.shown].map((ref) => listedOf(parts, ref, streaks.get(ref.prefix))),
            idOf: ({ ref }) => ref.prefix,
            empty: 'No webhook is in this state.',
          }),
        )}
        ${more ? html`<p class="note">Of those that are switched off, and of those that fail, the first ${WORST_SHOWN}: the links above show all.</p>` : null}
        ${page.next === undefined ? null : html`<p class="pages"><a href=${`/webhooks?${wanted === undefined ? '' : `state=${wanted}&`}after=${page.next}`}>Next ${ON_A_PAGE}</a></p>`}
      </section>
      ${commands([
        cmd('Every key with its webhook')`key list`,
        cmd('Accounts with the worst state of their webhooks')`account list`,
      ])}`,
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

function filters(wanted: string | undefined, { webhooks, disabled }: AccountLists, failing: unknown): VNode {
  const link = (name: string | undefined, text: unknown): VNode =>
    html`<a href=${name === undefined ? '/webhooks' : `/webhooks?state=${name}`} aria-current=${wanted === name ? 'true' : undefined}>${text}</a>`;
  return html`<p>
    ${link(undefined, html`all ${count(webhooks.length)}`)} · ${link('disabled', html`switched off ${count(disabled.length)}`)} ·
    ${link('failing', html`failing ${failing}`)} · ${link('active', 'the others')}
  </p>`;
}

/** What is listed of a webhook: whether it fails is not its account's to know. */
interface Listed {
  readonly ref: WebhookRef;
  readonly account: string;
  readonly url: string;
  readonly state: 'disabled' | 'failing' | 'active';
  readonly sinceMs: number | null | undefined;
  readonly why: string;
}

function listedOf(
  { directory }: PageContext['parts'],
  ref: WebhookRef,
  streak: LaneStreak | undefined,
): Listed {
  const found = directory.key(ref.prefix);
  const webhook = found?.key.webhook;
  const of = { ref, account: found?.entry.account?.name ?? '', url: webhook?.url ?? 'none' };
  const off = webhook?.disabled;
  if (off != null) return { ...of, state: 'disabled', sinceMs: off.sinceMs, why: off.reason };
  if (streak === undefined) return { ...of, state: 'active', sinceMs: webhook?.setAtMs, why: '' };
  const why = `${streak.failedInARow} failed in a row; ${streak.lastAnswers[0] ?? 'unknown'}`;
  return { ...of, state: 'failing', sinceMs: streak.failingSinceMs, why };
}

const COLUMNS: readonly Column<Listed>[] = [
  { head: 'Key', cell: ({ ref }) => link('webhook', ref.prefix) },
  { head: 'State', cell: ({ state: name }) => state(name) },
  { head: 'Since', cell: ({ sinceMs }) => time(sinceMs) },
  { head: 'Why', cell: ({ why }) => why },
  { head: 'Account', cell: ({ ref, account }) => [link('account', ref.accountId), account] },
  { head: 'URL', cell: ({ url }) => url },
];
