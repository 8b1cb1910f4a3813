import type { VNode } from 'preact';
import { heldReason } from '../../../accounts/account-state.ts';
import type { Attempt, Delivery } from '../../../deliveries/queue/delivery-queue.ts';
import { type Command, commands } from '../html/commands.ts';
import { block, html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { facts } from '../html/table.ts';
import { badge, links, state, time } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

const MAX_HEADERS = 40;

export async function deliveryPage({ parts, name: id }: PageContext): Promise<Page> {
  const delivery = await parts.queue.find(id);
  if (delivery === undefined) {
    return notFound(
      `Delivery ${id}`,
      'There is no such delivery. One that ended longer ago than the retention was removed; a test of a webhook is not in the log.',
      [{ what: 'The newest deliveries', words: ['delivery', 'list'] }],
    );
  }
  const { prefix, accountId, transactionId, createdAtMs, dueAtMs, type, cycle, attempts } = delivery;
  return {
    title: `Delivery ${id}`,
    main: html`<h1>Delivery <code>${line(id)}</code> ${state(delivery.state)}</h1>
      <section>
        ${facts([
          ['key', links.webhook(prefix)],
          ['account', links.account(accountId)],
          ['transaction', links.transaction(transactionId)],
          ['type', type],
          ['created', time(createdAtMs)],
          [
            'next attempt',
            dueAtMs === null ? 'none' : html`${time(dueAtMs)}, or then the lease of the present one ends`,
          ],
          ['why', whyOf(delivery, parts)],
          ['redeliveries', cycle - 1],
        ])}
      </section>
      <h2>Attempts, newest first</h2>
      ${attempts.length === 0 ? html`<section>No attempt was recorded.</section>` : attempts.toReversed().map(attemptSection)}
      ${commands(commandsOf(delivery))}`,
  };
}

/** Why it ended or is held. */
function whyOf(
  { state: name, reason, accountId }: Delivery,
  { directory, clock }: Pick<PageContext['parts'], 'directory' | 'clock'>,
): string {
  if (reason !== null) return line(reason, 1_000);
  if (name !== 'held') return '–';
  return heldReason(directory.account(accountId)?.account, clock.now());
}

/** With the receiver's answer, which is text of a stranger. */
function attemptSection({ cycle, number, startedAtMs, durationMs, outcome }: Attempt): VNode {
  const { answer } = outcome;
  const name = cycle === 1 ? `Attempt ${number}` : `Redelivery ${cycle - 1}, attempt ${number}`;
  const headers = Object.entries(answer?.headers ?? {});
  return html`<section id=${`attempt-${cycle}-${number}`}>
    <h3>${name} ${outcome.ok ? badge('delivered', 'good') : badge(outcome.kind, 'bad')}</h3>
    ${facts([
      ['at', time(startedAtMs)],
      ['took', `${Math.round(durationMs)} ms`],
      ['answer', answer === null ? 'none' : answer.status],
      ['error', outcome.ok ? '–' : line(outcome.detail, 1_000)],
    ])}
    ${
      answer === null
        ? null
        : html`<details id=${`answer-${cycle}-${number}`}>
          <summary>What the receiver wrote: ${headers.length} headers, ${answer.body.length} characters</summary>
          ${facts(headers.slice(0, MAX_HEADERS).map(([header, value]) => [line(header), line(value)] as const))}
          ${block(answer.body)}
        </details>`
    }
  </section>`;
}

function commandsOf({ id, state: name, transactionId }: Delivery): Command[] {
  const show = { what: 'The same on the command line, answers in full', words: ['delivery', 'show', id] };
  const transaction = { what: 'Its transaction', words: ['transaction', 'show', String(transactionId)] };
  if (name === 'failed')
    return [{ what: 'Send it again', words: ['delivery', 'redeliver', id] }, show, transaction];
  if (name === 'delivered') {
    const words = ['delivery', 'redeliver', id, '--force'];
    return [{ what: 'Send it once more, under the same id', words }, show, transaction];
  }
  return [show, transaction];
}
