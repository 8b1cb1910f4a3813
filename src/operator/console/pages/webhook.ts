import type { VNode } from 'preact';
import { noAccessReason } from '../../../accounts/account-state.ts';
import type { Backlog, LaneAttempt } from '../../../push/queue/delivery-queue.ts';
import {
  table as answerTable,
  type Column,
  facts as cells,
  link,
  state as stateCell,
  time as timeCell,
} from '../../answers/columns.ts';
import { HEALTH_FACTS, WEBHOOK_FACTS, webhookAnswer } from '../../answers/webhook.ts';
import { accountTail, type LoggedEvent } from '../figures/tails.ts';
import { dotChart } from '../html/charts.ts';
import { type Command, cmd, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { factsOf, table, tableOf } from '../html/table.ts';
import { count, plural, state, time } from '../html/values.ts';

/** The attempts of so many deliveries are shown, found among so many of the newest. */
const SHOWN = { deliveries: 60, maxRead: 2_000 };
const MAX_COUNTED = 10_000;
const PARTS = 10;
const MIN_IN_PART = 5;

export async function webhookPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined) {
    return notFound(`Webhook ${prefix}`, 'No key has this prefix.', [cmd('Every key')`key list`]);
  }
  const { key, entry } = found;
  const [health, backlog, attempts, events] = await Promise.all([
    parts.queue.health(prefix),
    parts.queue.backlog(MAX_COUNTED, prefix),
    parts.queue.attempts(prefix, SHOWN),
    accountTail(parts.store, entry),
  ]);
  const nowMs = parts.clock.now();
  const answer = webhookAnswer(entry.id, key, health);
  const { state: name } = answer;
  const isFailing = name === 'active' && health.failedInARow > 0;
  const noAccess = noAccessReason(entry.account, nowMs);
  const evidence = events.find(({ type, data }) => type === 'WebhookDisabled' && data.prefix === prefix);
  return {
    title: `Webhook ${prefix}`,
    main: html`<h1>Webhook of key <code>${line(prefix)}</code> ${state(isFailing ? 'failing' : name)}</h1>
      <div class="grid">
        <section><h2>Webhook</h2>
          ${factsOf([
            ...cells(WEBHOOK_FACTS, answer).facts,
            ['Its key is', [stateCell(key.active ? 'on' : 'off'), key.label ?? '']],
            ['Its account is', entry.account?.name ?? 'unreadable'],
          ])}
        </section>
        <section><h2>Health</h2>${factsOf([...cells(HEALTH_FACTS, answer).facts, ...backlogFacts(backlog, noAccess)])}</section>
      </div>
      ${name === 'disabled' ? switchedOff(evidence) : null}
      <div class="charts">${attemptCharts(attempts)}</div>
      <section>${answersTable(attempts)}</section>
      <p><a href=${`/deliveries?key=${encodeURIComponent(prefix.toWellFormed())}`}>All deliveries to this key</a>, <a href=${`/deliveries?key=${encodeURIComponent(prefix.toWellFormed())}&state=failed`}>those that failed</a></p>
      ${commands(commandsOf(prefix, name))}`,
  };
}

function backlogFacts({ pending, held, nextDueAtMs }: Backlog, noAccess: string | undefined) {
  const why = noAccess ?? 'the account has access again, they are about to be sent';
  return [
    ['Pending', count(pending, MAX_COUNTED)],
    ['Next due', nextDueAtMs === undefined ? 'nothing' : timeCell(nextDueAtMs)],
    ['Held', held === 0 ? '0' : `${count(held, MAX_COUNTED)}: ${why}`],
  ] as const;
}

/** By what evidence it was switched off. */
function switchedOff(event: LoggedEvent | undefined): VNode {
  const { failed_in_a_row: failed, failing_since: since, last_answers: answers } = event?.data ?? {};
  const by = event && `${event.actor ?? 'unknown'} (${event.command ?? 'unknown'})`;
  return html`<section class="problem"><h2>Switched off</h2>
    ${factsOf([
      ['By', by ?? 'unknown'],
      ['Failed in a row', typeof failed === 'number' ? failed : 'unknown'],
      ['Failing since', typeof since === 'string' ? since : '–'],
      ['Last answers', Array.isArray(answers) && answers.length > 0 ? answers.map(String).join(', ') : '–'],
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

const ANSWERS: readonly Column<readonly LaneAttempt[]>[] = [
  { head: 'Answer', cell: ([first]) => first?.answer ?? '' },
  { head: 'Attempts', number: true, cell: ({ length }) => length },
  { head: 'Mean time, ms', number: true, cell: meanMs },
  { head: 'Last', cell: (of) => timeCell(of.at(-1)?.startedAtMs) },
  { head: 'Delivery', cell: (of) => link('delivery', of.at(-1)?.deliveryId ?? '') },
];

function answersTable(attempts: readonly LaneAttempt[]): VNode {
  const groups = [...Map.groupBy(attempts, ({ answer }) => answer).values()];
  return tableOf(
    answerTable('Last answers by code', ANSWERS, {
      of: groups.sort((a, b) => b.length - a.length),
      idOf: ([first]) => first?.answer ?? '',
      empty: 'Nothing was attempted yet.',
    }),
  );
}

function meanMs(attempts: readonly LaneAttempt[]): number {
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
