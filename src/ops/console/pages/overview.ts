import type { VNode } from 'preact';
import type { FollowerStatus } from '../../followers.ts';
import type { AttemptMinute, Reading } from '../../history.ts';
import { MAX_BACKLOG_COUNTED } from '../../shared-figures.ts';
import { type Attention, attentionOf, failingWebhooks } from '../figures/attention.ts';
import type { Snapshot } from '../figures/snapshot.ts';
import { barChart, lineChart } from '../html/charts.ts';
import { commands, copied } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { facts, table } from '../html/table.ts';
import { asOf, badge, count, duration, orUnknown, plural, time, unknown } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

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
        { what: 'Look at everything that the service depends on', words: ['doctor'] },
        { what: 'How far each follower is', words: ['projection', 'status'] },
        { what: 'What failed lately', words: ['delivery', 'list', '--state', 'failed'] },
        { what: 'Compare view and deliveries with the events', words: ['verify', '--explain'] },
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
  return table({
    caption: 'Followers of the events',
    columns: [
      'Follower',
      { head: 'Behind', number: true },
      { head: 'Position', number: true },
      { head: 'Parked', number: true },
      'Worked on by',
    ],
    rows: followers.value.map((follower) => ({
      id: `follower-${follower.name}`,
      cells: [
        html`<a href="/projections">${follower.name}</a>`,
        follower.lag_events === 0 ? 'up to date' : duration(follower.lag_seconds),
        count(follower.position),
        follower.parked === 0 ? 0 : badge(String(follower.parked), 'bad'),
        holderOf(follower),
      ],
    })),
    empty: 'none',
  });
}

function holderOf({ holder, rebuild }: FollowerStatus): VNode {
  const by =
    holder === null
      ? badge('nobody', 'warn')
      : holder.split(', ').map((id) => html`<code>${line(id)}</code> `);
  return html`${by}${rebuild === undefined ? null : html` rebuilding: ${rebuild.percent} %`}`;
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
    parts: [
      { name: 'delivered', tone: 'good' },
      { name: 'failed', tone: 'bad' },
    ],
    points: minutes.map((minute) => ({ atMs: minute.atMs, values: [minute.delivered, failedOf(minute)] })),
  })}
  ${lineChart({
    id: 'chart-latency',
    title: 'Receivers’ time to answer, ms',
    note: `${note}; the dashed line is the 95th percentile`,
    lines: [
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
    lines: [
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
    lines: [{ name: 'pending', tone: 'first' }],
    points: readings.map(({ atMs, pending }) => ({ atMs, values: [pending] })),
  })}`;
}

function processTable({ processes }: Snapshot, self: string): VNode {
  if ('unknown' in processes) return html`<h2>Processes alive</h2><p>${unknown(processes.unknown)}</p>`;
  return table({
    caption: 'Processes alive',
    columns: [
      'Process',
      'Host',
      { head: 'Pid', number: true },
      'Roles',
      'Since',
      { head: 'Accounts applied to', number: true },
    ],
    rows: processes.value.map(({ id, host, pid, roles, startedAtMs, directoryPosition }) => ({
      id: `process-${id}`,
      cells: [
        html`<code>${line(id)}</code>${id === self ? ' (this one)' : ''}`,
        line(host),
        pid,
        roles.join(', '),
        time(startedAtMs),
        directoryPosition === null ? 'not caught up' : count(directoryPosition),
      ],
    })),
    empty: 'None has reported itself in the last six seconds.',
  });
}
