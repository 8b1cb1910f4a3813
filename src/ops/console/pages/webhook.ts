import type { VNode } from 'preact';
import { noAccessReason, webhookState } from '../../../accounts/account-state.ts';
import type { LaneAttempt, LaneBacklog } from '../../../deliveries/queue/bounded-reads.ts';
import type { WebhookHealth } from '../../../deliveries/queue/delivery-queue.ts';
import { type AccountEntry, accountTail } from '../figures/account-tail.ts';
import { dotChart } from '../html/charts.ts';
import { type Command, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { facts, table } from '../html/table.ts';
import { count, links, plural, state, time } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

/** Of how many deliveries attempts are shown, and among how many of the newest they are looked for. */
const SHOWN = { deliveries: 60, maxRead: 2_000 };
const MAX_COUNTED = 10_000;
const PARTS = 10;
const MIN_IN_PART = 5;

export async function webhookPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined) {
    return notFound(`Webhook ${prefix}`, 'No key has this prefix.', [
      { what: 'Every key', words: ['key', 'list'] },
    ]);
  }
  const { key, entry } = found;
  const [health, backlog, attempts, events] = await Promise.all([
    parts.queue.health(prefix),
    parts.reads.laneBacklog(prefix, MAX_COUNTED),
    parts.reads.attempts(prefix, SHOWN),
    accountTail(parts.store, entry),
  ]);
  const nowMs = parts.clock.now();
  const { state: name } = webhookState(key.webhook);
  const isFailing = name === 'active' && health.failedInARow > 0;
  const noAccess = noAccessReason(entry.account, nowMs);
  const evidence = events.find(({ type, data }) => type === 'WebhookDisabled' && data.prefix === prefix);
  return {
    title: `Webhook ${prefix}`,
    main: html`<h1>Webhook of key <code>${line(prefix)}</code> ${state(isFailing ? 'failing' : name)}</h1>
      <div class="grid">
        <section><h2>Webhook</h2>
          ${facts([
            ['URL', key.webhook === null ? 'none' : line(key.webhook.url, 1_000)],
            ['set at', time(key.webhook?.setAtMs)],
            ['key', html`${links.key(prefix)} ${line(key.label ?? '')} ${state(key.active ? 'on' : 'off')}`],
            ['account', html`${links.account(entry.id)} ${line(entry.account?.name ?? 'unreadable')}`],
          ])}
        </section>
        <section><h2>Health</h2>${healthFacts(health, backlog, noAccess)}</section>
      </div>
      ${key.webhook?.disabled == null ? null : switchedOff(key.webhook.disabled, evidence)}
      <div class="charts">${attemptCharts(attempts)}</div>
      <section>${answersTable(attempts)}</section>
      <p><a href=${`/deliveries?key=${encodeURIComponent(prefix.toWellFormed())}`}>All deliveries to this key</a>, <a href=${`/deliveries?key=${encodeURIComponent(prefix.toWellFormed())}&state=failed`}>those that failed</a></p>
      ${commands(commandsOf(prefix, name))}`,
  };
}

function healthFacts(health: WebhookHealth, backlog: LaneBacklog, noAccess: string | undefined): VNode {
  const { pending, held, nextDueAtMs } = backlog;
  return facts([
    ['failed in a row', health.failedInARow],
    ['failing since', time(health.failingSinceMs)],
    [
      'last failures',
      health.lastAnswers.length === 0
        ? 'none'
        : health.lastAnswers.map((answer) => html`<div>${line(answer)}</div>`),
    ],
    ['pending', count(pending, MAX_COUNTED)],
    ['next due', nextDueAtMs === undefined ? 'nothing' : time(nextDueAtMs)],
    [
      'held',
      held === 0
        ? '0'
        : `${count(held, MAX_COUNTED)}: ${noAccess ?? 'the account has access again, they are about to be sent'}`,
    ],
  ]);
}

/** Why it was switched off, and by what evidence. */
function switchedOff(
  { reason, sinceMs }: { readonly reason: string; readonly sinceMs: number },
  event: AccountEntry | undefined,
): VNode {
  const { failed_in_a_row: failed, failing_since: since, last_answers: answers } = event?.data ?? {};
  return html`<section class="problem"><h2>Switched off</h2>
    ${facts([
      ['since', time(sinceMs)],
      ['reason', line(reason, 1_000)],
      [
        'by',
        event === undefined
          ? 'unknown'
          : `${line(event.actor ?? 'unknown')} (${line(event.command ?? 'unknown')})`,
      ],
      ['failed in a row', typeof failed === 'number' ? failed : 'unknown'],
      ['failing since', typeof since === 'string' ? line(since) : '–'],
      [
        'last answers',
        Array.isArray(answers) && answers.length > 0
          ? answers.map((each) => html`<div>${line(String(each))}</div>`)
          : '–',
      ],
    ])}
  </section>`;
}

function attemptCharts(attempts: readonly LaneAttempt[]): VNode {
  const deliveries = new Set(attempts.map(({ deliveryId }) => deliveryId)).size;
  const note = `of the newest ${plural(deliveries, 'delivery', 'deliveries')} that were attempted`;
  return html`${dotChart({
    id: 'chart-answers',
    title: 'Time to answer, ms',
    note: `each attempt ${note}; failures in the colour of failure`,
    valueName: 'ms',
    points: attempts.map(({ startedAtMs, durationMs, ok, answer }) => ({
      atMs: startedAtMs,
      value: durationMs,
      tone: ok ? 'good' : 'bad',
      name: answer,
    })),
  })}
  <figure><figcaption><strong>Error rate over time</strong> <span class="note">${note}</span></figcaption>${rateTable(attempts)}</figure>`;
}

/** As many attempts in each row, since time may have long gaps. */
function rateTable(attempts: readonly LaneAttempt[]): VNode {
  const size = Math.max(MIN_IN_PART, Math.ceil(attempts.length / PARTS));
  const rows = Array.from({ length: Math.ceil(attempts.length / size) }, (_, at) => {
    const part = attempts.slice(at * size, (at + 1) * size);
    const failed = part.filter(({ ok }) => !ok).length;
    const percent = Math.round((failed / part.length) * 100);
    return {
      cells: [
        time(part[0]?.startedAtMs),
        part.length,
        html`${percent} %`,
        html`<meter min="0" low="10" high="50" max="100" optimum="0" value=${percent} aria-label=${`${percent} % failed`}></meter>`,
        meanMs(part),
      ],
    };
  });
  return table({
    caption: 'Error rate over time',
    hidesCaption: true,
    columns: [
      'From',
      { head: 'Attempts', number: true },
      { head: 'Failed', number: true },
      'Share',
      { head: 'Mean ms', number: true },
    ],
    rows: rows.toReversed(),
    empty: 'Nothing was attempted yet.',
  });
}

function answersTable(attempts: readonly LaneAttempt[]): VNode {
  const groups = [...Map.groupBy(attempts, ({ answer }) => answer)].sort(
    ([, a], [, b]) => b.length - a.length,
  );
  return table({
    caption: 'Last answers by code',
    columns: [
      'Answer',
      { head: 'Attempts', number: true },
      { head: 'Mean time, ms', number: true },
      'Last',
      'Delivery',
    ],
    rows: groups.map(([answer, of]) => {
      const last = of.at(-1);
      return {
        id: `answer-${answer}`,
        cells: [
          line(answer),
          of.length,
          meanMs(of),
          time(last?.startedAtMs),
          last && links.delivery(last.deliveryId),
        ],
      };
    }),
    empty: 'Nothing was attempted yet.',
  });
}

function meanMs(attempts: readonly LaneAttempt[]): number {
  return Math.round(attempts.reduce((sum, { durationMs }) => sum + durationMs, 0) / attempts.length);
}

function commandsOf(prefix: string, name: string): Command[] {
  const test = { what: 'Send one test now', words: ['webhook', 'test', prefix] };
  const failed = {
    what: 'Send again everything that failed',
    words: ['delivery', 'redeliver', '--failed', '--key', prefix],
  };
  const show = { what: 'The same on the command line', words: ['webhook', 'show', prefix] };
  if (name === 'none') return [{ what: 'Set the URL', words: ['webhook', 'set', prefix, 'https://…'] }, show];
  if (name === 'disabled')
    return [{ what: 'Switch it on again', words: ['webhook', 'enable', prefix] }, failed, show];
  return [
    test,
    { what: 'Switch it off', words: ['webhook', 'disable', prefix, '--reason', 'WHY'] },
    failed,
    show,
  ];
}
