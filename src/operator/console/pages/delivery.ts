import type { VNode } from 'preact';
import type { Attempt, Delivery } from '../../../push/queue/delivery-queue.ts';
import { facts, state } from '../../answers/columns.ts';
import {
  ATTEMPT_COLUMNS,
  attemptAnswer,
  attemptName,
  DELIVERY_COLUMNS,
  deliveryAnswer,
  withHeldReasons,
} from '../../answers/delivery.ts';
import { type Command, cmd } from '../html/commands.ts';
import { block, html, line } from '../html/html.ts';
import { notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, note } from '../html/parts.ts';

const MAX_HEADERS = 40;

export async function deliveryPage({ parts, name: id }: PageContext): Promise<Page> {
  const delivery = await parts.queue.find(id);
  if (delivery === undefined) {
    return notFound(
      `Delivery ${id}`,
      'There is no such delivery. One that ended longer ago than the retention was removed; a test of a webhook is not in the log.',
      { commands: [cmd('The newest deliveries')`delivery list`] },
    );
  }
  const { directory, clock } = parts;
  const [held = delivery] = await withHeldReasons([delivery], (of) => directory.account(of), clock.now());
  const { attempts, cycle, dueAtMs } = delivery;
  return {
    title: `Delivery ${id}`,
    heading: [`Delivery ${id}`, state(delivery.state)],
    parts: [
      { facts: [...facts(DELIVERY_COLUMNS, deliveryAnswer(held)).facts, ['Redeliveries', cycle - 1]] },
      dueAtMs === null ? null : note('At the next attempt, or then the lease of the present one ends.'),
      html`<h2>Attempts, newest first</h2>`,
      ...(attempts.length === 0
        ? [html`<section>No attempt was recorded.</section>`]
        : attempts.toReversed().map(attemptSection)),
    ],
    commands: commandsOf(delivery),
  };
}

/** With the receiver's answer, which is text of a stranger. */
function attemptSection(attempt: Attempt): VNode {
  const { cycle, number, outcome } = attempt;
  const { answer } = outcome;
  const shown = attemptAnswer(attempt);
  const headers = Object.entries(answer?.headers ?? {});
  return html`<section id=${`attempt-${cycle}-${number}`}>
    <h3>${attemptName(shown)}</h3>
    ${content(facts(ATTEMPT_COLUMNS, shown))}
    ${
      answer === null
        ? null
        : html`<details id=${`answer-${cycle}-${number}`}>
          <summary>What the receiver wrote: ${headers.length} headers, ${answer.body.length} characters</summary>
          ${content({ facts: headers.slice(0, MAX_HEADERS).map(([header, value]) => [line(header), line(value)]) })}
          ${block(answer.body)}
        </details>`
    }
  </section>`;
}

function commandsOf({ id, state: name, transactionId }: Delivery): Command[] {
  const show = cmd('The same on the command line, answers in full')`delivery show ${id}`;
  const transaction = cmd('Its transaction')`transaction show ${transactionId}`;
  if (name === 'failed') return [cmd('Send it again')`delivery redeliver ${id}`, show, transaction];
  if (name === 'delivered')
    return [cmd('Send it once more, under the same id')`delivery redeliver ${id} --force`, show, transaction];
  return [show, transaction];
}
