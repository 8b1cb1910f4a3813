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
/** Of those that need attention, before all others on the first page. */
const WORST_SHOWN = 25;
const STATES = ['disabled', 'failing', 'active'] as const;
const COLUMNS = ['Key', 'State', 'Since', 'Why', 'Account', 'URL'];

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
  const pages = {
    disabled: () => pageOf(lists.disabled, after),
    failing: () => pageOf(failingRefs, after),
    active: () => othersOf(lists.webhooks, { after, apart }),
  };
  const page = pages[wanted ?? 'active']();
  const first = wanted === undefined && after === undefined ? [lists.disabled, failingRefs] : [];
  const worst = first.flatMap((refs) => refs.slice(0, WORST_SHOWN));
  const more = first.some((refs) => refs.length > WORST_SHOWN);
  return {
    title: 'Webhooks',
    main: html`<h1>Webhooks</h1>
      ${filters(wanted, lists, 'unknown' in failing ? unknown(failing.unknown) : count(fails.length, MAX_FAILING))}
      <section>
        ${table({
          caption: 'Webhooks of active keys',
          columns: COLUMNS,
          rows: [...worst, ...page.shown].map((ref) => rowOf(parts, ref, streaks.get(ref.prefix))),
          empty: 'No webhook is in this state.',
        })}
        ${more ? html`<p class="note">Of those that are switched off, and of those that fail, the first ${WORST_SHOWN}: the links above show all.</p>` : null}
        ${page.next === undefined ? null : html`<p class="pages"><a href=${`/webhooks?${wanted === undefined ? '' : `state=${wanted}&`}after=${page.next}`}>Next ${ON_A_PAGE}</a></p>`}
      </section>
      ${commands([
        { what: 'Every key with its webhook', words: ['key', 'list'] },
        { what: 'Accounts with the worst state of their webhooks', words: ['account', 'list'] },
      ])}`,
  };
}

interface ListedPage {
  readonly shown: readonly WebhookRef[];
  readonly next: string | undefined;
}

function pageFrom(shown: readonly WebhookRef[], hasMore: boolean): ListedPage {
  const last = shown.at(-1);
  return { shown, next: hasMore && last !== undefined ? `${last.accountId}-${last.prefix}` : undefined };
}

/** Of a short list, in its own order; from its beginning where the webhook to continue after is gone. */
function pageOf(refs: readonly WebhookRef[], after: string | undefined): ListedPage {
  const from =
    after === undefined ? 0 : refs.findIndex((ref) => `${ref.accountId}-${ref.prefix}` === after) + 1;
  return pageFrom(refs.slice(from, from + ON_A_PAGE), refs.length > from + ON_A_PAGE);
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
  webhooks: readonly WebhookRef[],
  { after, apart }: { readonly after: string | undefined; readonly apart: ReadonlySet<string> },
): ListedPage {
  const shown: WebhookRef[] = [];
  for (let at = placeAfter(webhooks, after); at < webhooks.length; at++) {
    const ref = webhooks[at];
    if (ref === undefined || apart.has(ref.prefix)) continue;
    if (shown.length === ON_A_PAGE) return pageFrom(shown, true);
    shown.push(ref);
  }
  return pageFrom(shown, false);
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

function rowOf(
  parts: PageContext['parts'],
  { accountId, prefix }: WebhookRef,
  streak: LaneStreak | undefined,
): TableRow {
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
