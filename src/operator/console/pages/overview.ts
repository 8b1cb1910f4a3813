import type { VNode } from 'preact';
import type { LiveProcess } from '../../../base/coordination/coordination.ts';
import type { AttemptMinute, Reading } from '../../../service/ops/history.ts';
import { MAX_BACKLOG_COUNTED } from '../../../service/ops/shared-figures.ts';
import * as answers from '../../answers/columns.ts';
import { duration, FOLLOWER_COLUMNS } from '../../answers/follower.ts';
import { failingWebhooks } from '../../checks/accounts.ts';
import { type Attention, attentionOf } from '../figures/attention.ts';
import type { Snapshot } from '../figures/snapshot.ts';
import { barChart, lineChart } from '../html/charts.ts';
import { cmd, commands, copied } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { facts, tableOf } from '../html/table.ts';
import { asOf, badge, count, orUnknown, plural, time, unknown } from '../html/values.ts';

export async function overviewPage({ parts, snapshots }: PageContext): Promise<Page> {
  const snapshot = await snapshots.get();
  const found = attentionOf(snapshot, parts);
  const problems = found.length === 0 ? '' : `(${found.length}) `;
  return {
    title: `${problems}Overview`,
    main: html`<h1>Overview</h1>
      ${attentionList(found)}
      <div class="grid">
        <section>${followersTable(snapshot)}${asOf(snapshot.followers, snapshot.atMs)}</section>
        <section><h2>Deliveries</h2>${deliveryFacts(snapshot, parts)}${asOf(snapshot.backlog, snapshot.atMs)}</section>
      </div>
      <div class="charts">
        ${attemptCharts(parts.attempts.minutes(), parts.roles)}
        ${historyCharts(parts.history.readings())}
      </div>
      <section>${processTable(snapshot, parts.id)}</section>
      ${commands([
        cmd('Look at everything that the service depends on')`doctor`,
        cmd('How far each follower is')`projection status`,
        cmd('What failed lately')`delivery list --state failed`,
        cmd('Compare view and deliveries with the events')`verify --explain`,
      ])}`,
  };
}

function attentionList(found: readonly Attention[]): VNode {
  if (found.length === 0) {
    return html`<section class="well" id="attention">All is well: nothing needs attention.</section>`;
  }
  return html`<ul class="attention" id="attention" aria-label="What needs attention">
    ${found.map(
      ({ level, id, text, href, words }) => html`<li id=${`attention-${id}`} class=${level}>
        ${badge(level === 'bad' ? 'act' : 'look', level)}
        <span>${line(text)} – <a href=${href}>more</a></span>
        ${words === undefined ? null : copied(words)}
      </li>`,
    )}
  </ul>`;
}

export function followersTable({ followers }: Pick<Snapshot, 'followers'>): VNode {
  if ('unknown' in followers)
    return html`<h2>Followers of the events</h2><p>${unknown(followers.unknown)}</p>`;
  return tableOf(
    answers.table('Followers of the events', FOLLOWER_COLUMNS, {
      of: followers.value,
      idOf: ({ name }) => name,
      empty: 'none',
    }),
  );
}

function deliveryFacts(snapshot: Snapshot, parts: PageContext['parts']): VNode {
  const { backlog, failing, lists, atMs } = snapshot;
  return facts([
    [
      'pending',
      orUnknown(
        backlog,
        ({ pending }) => html`<a href="/deliveries?state=pending">${count(pending, MAX_BACKLOG_COUNTED)}</a>`,
      ),
    ],
    [
      'oldest due',
      orUnknown(backlog, ({ oldestDueAtMs }) =>
        oldestDueAtMs === undefined
          ? 'none'
          : html`${time(oldestDueAtMs)}${oldestDueAtMs < atMs ? ` (${duration((atMs - oldestDueAtMs) / 1000)} ago)` : ''}`,
      ),
    ],
    [
      'held',
      orUnknown(
        backlog,
        ({ held }) => html`<a href="/deliveries?state=held">${count(held, MAX_BACKLOG_COUNTED)}</a>`,
      ),
    ],
    [
      'webhooks',
      html`<a href="/webhooks">${orUnknown(lists, ({ webhooks }) => count(webhooks.length))}</a>, <a href="/webhooks?state=disabled">${parts.directory.counts.disabledWebhooks} switched off</a>, ${orUnknown(failing, (lanes) => html`<a href="/webhooks?state=failing">${failingWebhooks(lanes, parts).length} failing</a>`)}`,
    ],
    ['failed', html`<a href="/deliveries?state=failed">the newest that failed</a>`],
    [
      'accounts',
      html`<a href="/accounts">${orUnknown(lists, ({ accounts }) => plural(accounts.length, 'account'))}</a>`,
    ],
  ]);
}

function attemptCharts(minutes: readonly AttemptMinute[], roles: readonly string[]): VNode {
  if (!roles.includes('webhooks')) {
    return html`<figure><figcaption><strong>Attempts</strong></figcaption>
      <p class="note">Unknown here: this process has no role webhooks. The processes below that have it show theirs.</p></figure>`;
  }
  const failedOf = ({ failed }: AttemptMinute): number =>
    Object.values(failed).reduce((sum, n) => sum + n, 0);
  const note = 'of this process, in the last hour';
  return html`${barChart({
    id: 'chart-attempts',
    title: 'Attempts a minute',
    note,
    series: [
      { name: 'delivered', tone: 'good' },
      { name: 'failed', tone: 'bad' },
    ],
    points: minutes.map((minute) => ({ atMs: minute.atMs, values: [minute.delivered, failedOf(minute)] })),
  })}
  ${lineChart({
    id: 'chart-latency',
    title: 'Receivers’ time to answer, ms',
    note: `${note}; the dashed line is the 95th percentile`,
    series: [
      { name: 'median', tone: 'first' },
      { name: '95th percentile', tone: 'second' },
    ],
    points: minutes.map(({ atMs, medianMs, p95Ms }) => ({ atMs, values: [medianMs, p95Ms] })),
  })}`;
}

function historyCharts(readings: readonly Reading[]): VNode {
  const note = 'read every 15 s, in the last hour';
  return html`${lineChart({
    id: 'chart-lag',
    title: 'Followers behind, s',
    note: `${note}; transactions, deliveries dashed, notices dotted`,
    series: [
      { name: 'transactions', tone: 'first' },
      { name: 'deliveries', tone: 'second' },
      { name: 'notices', tone: 'third' },
    ],
    points: readings.map(({ atMs, lag }) => ({
      atMs,
      values: [lag.transactions ?? null, lag.deliveries ?? null, lag.notices ?? null],
    })),
  })}
  ${lineChart({
    id: 'chart-pending',
    title: 'Deliveries pending',
    note: `${note}, counted up to ${MAX_BACKLOG_COUNTED.toLocaleString('en-US')}`,
    series: [{ name: 'pending', tone: 'first' }],
    points: readings.map(({ atMs, pending }) => ({ atMs, values: [pending] })),
  })}`;
}

function processTable({ processes }: Snapshot, self: string): VNode {
  if ('unknown' in processes) return html`<h2>Processes alive</h2><p>${unknown(processes.unknown)}</p>`;
  return tableOf(
    answers.table('Processes alive', processColumns(self), {
      of: processes.value,
      idOf: ({ id }) => id,
      empty: 'None has reported itself in the last six seconds.',
    }),
  );
}

function processColumns(self: string): readonly answers.Column<LiveProcess>[] {
  return [
    { head: 'Process', cell: ({ id }) => [id, id === self ? '(this one)' : ''] },
    { head: 'Host', cell: ({ host }) => host },
    { head: 'Pid', number: true, cell: ({ pid }) => pid },
    { head: 'Roles', cell: ({ roles }) => roles.join(', ') },
    { head: 'Since', cell: ({ startedAtMs }) => answers.time(startedAtMs) },
    {
      head: 'Accounts applied to',
      number: true,
      cell: ({ directoryPosition }) => directoryPosition ?? 'not caught up',
    },
  ];
}
