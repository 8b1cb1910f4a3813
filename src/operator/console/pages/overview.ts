import type { VNode } from 'preact';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { MAX_BACKLOG_COUNTED, type Reading } from '../../../service/ops/shared-figures.ts';
import { MAX_ACCOUNTS_COUNTED } from '../../accounts/account-figures.ts';
import type { Attention } from '../../checks/attention.ts';
import { duration, time } from '../../print/document.ts';
import type { Figures } from '../figures/figures.ts';
import type { AttemptMinute } from '../figures/history.ts';
import { chart } from '../html/charts.ts';
import { cmd, copied } from '../html/commands.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { grid, number, orUnknown, type Shown, sectionOf, show } from '../html/parts.ts';

export async function overviewPage({ parts, figures }: PageContext): Promise<Page> {
  const [problems, followers, facts, processes] = await Promise.all([
    figures.problems(),
    figures.followers(),
    deliveriesAndAccounts(figures, parts),
    figures.processes(),
  ]);
  const nowMs = parts.clock.now();
  return {
    title: `${problems.length === 0 ? '' : `(${problems.length}) `}Overview`,
    heading: 'Overview',
    parts: [
      attentionList(problems),
      grid(
        sectionOf('Followers of the events', { found: followers, nowMs }, (of) => of),
        facts,
      ),
      html`<div class="charts">
        ${attemptCharts(parts.attempts.minutes(), parts.roles)}
        ${historyCharts(parts.readings)}
      </div>`,
      sectionOf('Live processes', { found: processes, nowMs }, (of) =>
        of.map(({ id, host, pid, roles, startedAtMs, isReady }) => ({
          id: id === parts.id ? `${id} (this one)` : id,
          host,
          pid,
          roles,
          since: formatDateTime(startedAtMs),
          ready: isReady,
        })),
      ),
    ],
    commands: [
      cmd('Check everything that the service depends on')`doctor`,
      cmd('How far each follower is')`projection status`,
      cmd('Deliveries that failed')`delivery list --state failed`,
      cmd('Compare view and deliveries with the events')`verify --explain`,
    ],
  };
}

function attentionList(problems: readonly Attention[]): VNode {
  if (problems.length === 0)
    return html`<section class="well" id="attention">All is well: nothing needs attention.</section>`;
  return html`<ul class="attention" id="attention" aria-label="What needs attention">
    ${problems.map(({ isNotice, detail, do: remedy, id, words, href }) => {
      const text = remedy === `fuel ${words.join(' ')}` ? detail : `${detail}: ${remedy}`;
      return html`<li id=${`attention-${id}`} class=${isNotice ? 'warn' : 'bad'}>
        ${show(isNotice ? { state: 'look', tone: 'warn' } : { state: 'act', tone: 'bad' })}
        <span>${show(text)} – <a href=${href}>more</a></span>
        ${copied(words)}
      </li>`;
    })}
  </ul>`;
}

async function deliveriesAndAccounts(figures: Figures, { clock }: PageContext['parts']) {
  const [backlog, failing, accounts, operations] = await Promise.all([
    figures.backlog(),
    figures.failing(),
    figures.accounts(),
    figures.operations(),
  ]);
  const to = (path: string, text: Shown): VNode => html`<a href=${path}>${show(text)}</a>`;
  const counted = (name: 'pending' | 'held'): Shown =>
    orUnknown(backlog, (of) => to(`/deliveries?state=${name}`, number(of?.[name] ?? 0, MAX_BACKLOG_COUNTED)));
  const due = orUnknown(backlog, (of) => {
    const dueAtMs = of?.nextDueAtMs;
    if (dueAtMs === undefined) return 'none';
    const lateMs = clock.now() - dueAtMs;
    return [time(dueAtMs), lateMs > 0 ? `(${duration(lateMs / 1000)} ago)` : ''];
  });
  const count = (name: 'webhooks' | 'accounts' | 'disabledWebhooks'): Shown =>
    orUnknown(accounts, (of) => number(of[name], MAX_ACCOUNTS_COUNTED));
  const failed = orUnknown(failing, ({ length }) => `${length} failing`);
  const ofWebhooks: Shown = [
    ...[to('/webhooks', count('webhooks')), '·'],
    to('/webhooks?state=disabled', [count('disabledWebhooks'), 'switched off']),
    '·',
    to('/webhooks?state=failing', failed),
  ];
  const proven = orUnknown(operations, (list) => {
    const last = list.find(({ type }) => type === 'LogProven');
    if (last === undefined) return 'not yet';
    return [time(last.atMs), `its first ${number(Number(last.data.size))} events are what was sealed`];
  });
  return {
    caption: 'Deliveries and accounts',
    facts: [
      ['Pending', counted('pending')],
      ['Oldest due', due],
      ['Held', counted('held')],
      ['Webhooks', ofWebhooks],
      ['Failed', to('/deliveries?state=failed', 'the newest failures')],
      ['Accounts', to('/accounts', count('accounts'))],
      ['Log proven', proven],
    ] as const,
  };
}

function attemptCharts(minutes: readonly AttemptMinute[], roles: readonly string[]): VNode {
  if (!roles.includes('webhooks')) {
    return html`<figure><figcaption><strong>Attempts</strong></figcaption>
      <p class="note">Unknown here: this process has no role webhooks. The consoles of processes with that role show it.</p></figure>`;
  }
  const note = 'of this process, in the last hour';
  return html`${chart({
    id: 'chart-attempts',
    title: 'Attempts a minute',
    note,
    kind: 'bars',
    series: [
      { name: 'delivered', tone: 'good' },
      { name: 'failed', tone: 'bad' },
    ],
    points: minutes.map((minute) => ({ atMs: minute.atMs, values: [minute.delivered, minute.failed] })),
  })}
  ${chart({
    id: 'chart-latency',
    title: 'Receivers’ time to answer, ms',
    note: `${note}; the dashed line is the 95th percentile`,
    kind: 'lines',
    series: [
      { name: 'median', tone: 'first' },
      { name: '95th percentile', tone: 'second' },
    ],
    points: minutes.map(({ atMs, medianMs, p95Ms }) => ({ atMs, values: [medianMs, p95Ms] })),
  })}`;
}

function historyCharts(readings: readonly Reading[]): VNode {
  const note = 'read every 15 s, in the last hour';
  const followers = { transactions: 'first', deliveries: 'second', notices: 'third' } as const;
  const names = Object.keys(followers) as (keyof typeof followers)[];
  return html`${chart({
    id: 'chart-lag',
    title: 'Lag of the followers, s',
    note: `${note}; transactions, deliveries dashed, notices dotted`,
    kind: 'lines',
    series: names.map((name) => ({ name, tone: followers[name] })),
    points: readings.map(({ atMs, lag }) => ({ atMs, values: names.map((name) => lag[name] ?? null) })),
  })}
  ${chart({
    id: 'chart-pending',
    title: 'Deliveries pending',
    note: `${note}, counted up to ${number(MAX_BACKLOG_COUNTED)}`,
    kind: 'lines',
    series: [{ name: 'pending', tone: 'first' }],
    points: readings.map(({ atMs, pending }) => ({ atMs, values: [pending] })),
  })}`;
}
