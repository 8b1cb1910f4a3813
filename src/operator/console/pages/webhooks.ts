import type { VNode } from 'preact';
import type { Backlog, LaneAttempt } from '../../../push/queue/delivery-reads.ts';
import { noAccess } from '../../answers/access.ts';
import { type Column, facts, link, state, type Table, table, time } from '../../answers/columns.ts';
import { HEALTH_FACTS, WEBHOOK_FACTS, webhookAnswer } from '../../answers/webhook.ts';
import { MAX_FAILING } from '../../checks/accounts.ts';
import type { AccountLists, WebhookRef } from '../figures/account-lists.ts';
import { accountTail } from '../figures/tails.ts';
import { chart } from '../html/charts.ts';
import { type Command, cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext, unavailable } from '../html/layout.ts';
import {
  content,
  grid,
  href,
  next,
  number,
  orUnknown,
  plural,
  problem,
  type Shown,
  show,
} from '../html/parts.ts';
import { loggedTable } from './account.ts';

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

/** The attempts of so many deliveries are shown, found among so many of the newest. */
const SHOWN = { deliveries: 60, maxRead: 2_000 };
const MAX_COUNTED = 10_000;
const PARTS = 10;
const MIN_IN_PART = 5;
const EMPTY = 'Nothing was attempted yet.';
const EVIDENCE = ['failed_in_a_row', 'failing_since', 'last_answers'];

export async function webhookPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined)
    return notFound(`Webhook ${prefix}`, 'No key has this prefix.', {
      commands: [cmd('Every key')`key list`],
    });
  const { key, entry } = found;
  const [health, backlog, attempts, events] = await Promise.all([
    parts.queue.health(prefix),
    parts.queue.backlog(MAX_COUNTED, prefix),
    parts.queue.attempts(prefix, SHOWN),
    accountTail(parts.store, entry),
  ]);
  const answer = webhookAnswer(entry.id, key, health);
  const { state: name } = answer;
  const isFailing = name === 'active' && health.failedInARow > 0;
  const refused = noAccess(entry.account, parts.clock.now())?.reason;
  const evidence = events
    .filter(({ type, data }) => type === 'WebhookDisabled' && data.prefix === prefix)
    .slice(0, 1);
  const deliveries = { key: prefix };
  return {
    title: `Webhook ${prefix}`,
    heading: [`Webhook of key ${prefix}`, state(isFailing ? 'failing' : name)],
    parts: [
      grid(
        {
          caption: 'Webhook',
          facts: [
            ...facts(WEBHOOK_FACTS, answer).facts,
            ['Its key is', [state(key.active ? 'on' : 'off'), key.label ?? '']],
            ['Its account is', entry.account?.name ?? 'unreadable'],
          ],
        },
        {
          caption: 'Health',
          facts: [...facts(HEALTH_FACTS, answer).facts, ...backlogFacts(backlog, refused)],
        },
      ),
      name === 'disabled' ? problem(content(loggedTable('Switched off', evidence, EVIDENCE))) : null,
      attemptCharts(attempts),
      answersTable(attempts),
      html`<p><a href=${href('/deliveries', deliveries)}>All deliveries to this key</a>, <a href=${href('/deliveries', { ...deliveries, state: 'failed' })}>those that failed</a></p>`,
    ],
    commands: commandsOf(prefix, name),
  };
}

function backlogFacts({ pending, held, nextDueAtMs }: Backlog, refused: string | undefined) {
  const why = refused ?? 'the account has access again, they are about to be sent';
  return [
    ['Pending', number(pending, MAX_COUNTED)],
    ['Next due', nextDueAtMs === undefined ? 'nothing' : time(nextDueAtMs)],
    ['Held', held === 0 ? '0' : `${number(held, MAX_COUNTED)}: ${why}`],
  ] as const;
}

function attemptCharts(attempts: readonly LaneAttempt[]): VNode {
  const deliveries = new Set(attempts.map(({ deliveryId }) => deliveryId)).size;
  const note = `of the newest ${plural(deliveries, 'delivery', 'deliveries')} that were attempted`;
  const answers = chart({
    id: 'chart-answers',
    title: 'Time to answer, ms',
    note: `each attempt ${note}; failures in the colour of failure`,
    kind: 'dots',
    series: [{ name: 'ms', tone: 'good' }],
    points: attempts.map(({ startedAtMs, durationMs, ok, answer }) => ({
      atMs: startedAtMs,
      values: [Math.round(durationMs)],
      tone: ok ? 'good' : 'bad',
      label: answer,
    })),
  });
  return html`<div class="charts">${answers}
    <figure><figcaption><strong>Error rate over time</strong> <span class="note">${note}</span></figcaption>${content(rateTable(attempts))}</figure>
  </div>`;
}

type Attempts = readonly LaneAttempt[];

const RATES: readonly Column<Attempts>[] = [
  { head: 'From', cell: ([first]) => time(first?.startedAtMs) },
  { head: 'Attempts', number: true, cell: ({ length }) => length },
  {
    head: 'Failed',
    cell: (of) => ({ percent: Math.round((of.filter(({ ok }) => !ok).length / of.length) * 100) }),
  },
  { head: 'Mean ms', number: true, cell: meanMs },
];

/** As many attempts in each row, since time may have long gaps. */
function rateTable(attempts: Attempts): Table {
  const size = Math.max(MIN_IN_PART, Math.ceil(attempts.length / PARTS));
  const parts = Array.from({ length: Math.ceil(attempts.length / size) }, (_, at) =>
    attempts.slice(at * size, (at + 1) * size),
  );
  return table('Error rate over time', RATES, { of: parts.reverse(), empty: EMPTY });
}

const ANSWERS: readonly Column<Attempts>[] = [
  { head: 'Answer', cell: ([first]) => first?.answer ?? '' },
  { head: 'Attempts', number: true, cell: ({ length }) => length },
  { head: 'Mean time, ms', number: true, cell: meanMs },
  { head: 'Last', cell: (of) => time(of.at(-1)?.startedAtMs) },
  { head: 'Delivery', cell: (of) => link('delivery', of.at(-1)?.deliveryId ?? '') },
];

function answersTable(attempts: Attempts): Table {
  const groups = [...Map.groupBy(attempts, ({ answer }) => answer).values()];
  return table('Last answers by code', ANSWERS, {
    of: groups.sort((a, b) => b.length - a.length),
    idOf: ([first]) => first?.answer ?? '',
    empty: EMPTY,
  });
}

function meanMs(attempts: Attempts): number {
  return Math.round(attempts.reduce((sum, { durationMs }) => sum + durationMs, 0) / attempts.length);
}

function commandsOf(prefix: string, name: string): Command[] {
  const test = cmd('Send one test now')`webhook test ${prefix}`;
  const failed = cmd('Send again everything that failed')`delivery redeliver --failed --key ${prefix}`;
  const show = cmd('The same on the command line')`webhook show ${prefix}`;
  if (name === 'none') return [cmd('Set the URL')`webhook set ${prefix} https://…`, show];
  if (name === 'disabled') return [cmd('Switch it on again')`webhook enable ${prefix}`, failed, show];
  return [test, cmd('Switch it off')`webhook disable ${prefix} --reason WHY`, failed, show];
}
