import type { VNode } from 'preact';
import { redactedRecord } from '../../../../projections/record.ts';
import { envelopeBody } from '../../../push/message/envelope.ts';
import { type Attempt, DELIVERY_STATES, type Delivery } from '../../../push/queue/delivery.ts';
import type { DeliveryPlace } from '../../../push/queue/delivery-reads.ts';
import { type Facts, facts, state, table } from '../../answers/columns.ts';
import {
  ATTEMPT_COLUMNS,
  attemptAnswer,
  attemptName,
  DELIVERY_COLUMNS,
  deliveryAnswer,
  withHeldReasons,
} from '../../answers/delivery.ts';
import { DELIVERY_FIELDS, type DeliveryField, readDeliveryFilter } from '../../answers/filters.ts';
import { unknownName } from '../../answers/names.ts';
import { archivedText } from '../../answers/transaction.ts';
import { type Command, cmd } from '../html/commands.ts';
import { block, html, line } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, type Field, form, next, note, number } from '../html/parts.ts';

const ON_A_PAGE = 25;
/** What one page reads of the log at most: some milliseconds. */
const MAX_READ = 2_000;
const FIELDS: readonly (Field & { readonly name: DeliveryField })[] = [
  { name: 'state', label: 'State', size: 14, choices: DELIVERY_STATES },
  { name: 'key', label: 'Key', size: 14, placeholder: 'a1b2c3d4e5' },
  { name: 'account', label: 'Account', size: 14, placeholder: '7' },
  { name: 'transaction', label: 'Transaction', size: 14, placeholder: '70001' },
  { name: 'since', label: 'Created since', size: 14, placeholder: '2026-01-01T00:00:00.000Z' },
  { name: 'until', label: 'until', size: 14, placeholder: '2027-01-01T00:00:00.000Z' },
];
type Given = Readonly<Partial<Record<DeliveryField, string>>>;

/** Deliveries by the filters in the URL, newest first. */
export async function deliveriesPage({ parts, query }: PageContext): Promise<Page> {
  const given: Given = Object.fromEntries(
    DELIVERY_FIELDS.flatMap((field) => (query[field] ? [[field, query[field].trim()]] : [])),
  );
  const above = form({ action: '/deliveries', fields: FIELDS, given, submit: 'Show', all: 'all' });
  const read = readDeliveryFilter(given);
  if ('faults' in read) return malformed('Deliveries', read.faults, above);
  const accountOf = (id: number) => parts.directory.account(id);
  const ownerOf = (prefix: string) => parts.directory.key(prefix)?.entry.id;
  const after = readPlace(query.after);
  const why =
    query.after !== undefined && after === undefined
      ? `there is no delivery ${query.after} to continue after`
      : await unknownName(read.given, { store: parts.store, accountOf, ownerOf });
  if (why !== undefined) return notFound('Deliveries', why, { above });
  const limits = { limit: ON_A_PAGE, maxRead: MAX_READ };
  const { deliveries: found, next: place } = await parts.queue.page(read.filter, { ...limits, after });
  const deliveries = await withHeldReasons(found, accountOf, parts.clock.now());
  const isShort = place !== undefined && deliveries.length < ON_A_PAGE;
  return {
    title: 'Deliveries',
    parts: [
      above,
      table('Deliveries, newest first', DELIVERY_COLUMNS, {
        of: deliveries.map(deliveryAnswer),
        idOf: ({ id }) => id,
        empty: isShort ? 'None among those that were looked through.' : 'No delivery matches.',
      }),
      isShort
        ? note(
            `Looked through ${number(MAX_READ)} deliveries of the log. A time or a key leaves fewer to look through.`,
          )
        : null,
      next(
        '/deliveries',
        { ...given, after: place && `${place.createdAtMs}-${place.id}` },
        isShort ? 'Look through older ones' : `Next ${ON_A_PAGE}`,
      ),
    ],
    commands: commandsOf(given),
  };
}

function readPlace(text: string | undefined): DeliveryPlace | undefined {
  const [, ms, id] = /^(\d{1,15})-(.+)$/.exec(text ?? '') ?? [];
  return ms === undefined || id === undefined ? undefined : { createdAtMs: Number(ms), id };
}

function commandsOf(given: Given): Command[] {
  const optionsOf = (fields: readonly DeliveryField[]): string[] =>
    fields.flatMap((field) => (given[field] === undefined ? [] : [`--${field}`, given[field]]));
  const options = optionsOf(DELIVERY_FIELDS);
  const list = cmd('The same on the command line')`delivery list ${options}`;
  const follow = cmd('As they change')`delivery list ${options} --follow`;
  if (given.state !== 'failed' || given.key === undefined) return [list, follow];
  const failed = cmd('Send all failed ones of this key again');
  return [failed`delivery redeliver --failed ${optionsOf(['key', 'since', 'until'])}`, list, follow];
}

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
  const sent = html`<div><h3>Sent</h3>${content({ facts: sentHeaders(delivery) })}${block(sentBody(delivery))}</div>`;
  return {
    title: `Delivery ${id}`,
    heading: [`Delivery ${id}`, state(delivery.state)],
    parts: [
      { facts: [...facts(DELIVERY_COLUMNS, deliveryAnswer(held)).facts, ['Redeliveries', cycle - 1]] },
      dueAtMs === null ? null : note('At the next attempt, or then the lease of the present one ends.'),
      html`<h2>Attempts, newest first</h2>`,
      ...(attempts.length === 0
        ? [html`<section>No attempt was recorded.</section>`]
        : attempts.toReversed().map((attempt, at) => attemptSection(attempt, { sent, isLast: at === 0 }))),
    ],
    commands: commandsOfOne(delivery),
  };
}

/** With what was sent, but for its driver and signature, beside the receiver's answer, which is text of a stranger. */
function attemptSection(
  attempt: Attempt,
  { sent, isLast }: { readonly sent: VNode; readonly isLast: boolean },
): VNode {
  const { cycle, number, outcome } = attempt;
  const { answer } = outcome;
  const shown = attemptAnswer(attempt);
  const headers = Object.entries(answer?.headers ?? {});
  return html`<section id=${`attempt-${cycle}-${number}`}>
    <h3>${attemptName(shown)}</h3>
    ${content(facts(ATTEMPT_COLUMNS, shown))}
    <details id=${`answer-${cycle}-${number}`} open=${isLast}>
      <summary>What was sent, and what the receiver wrote</summary>
      <div class="grid">
        ${sent}
        <div><h3>Answered</h3>${
          answer === null
            ? note('No answer came.')
            : html`${content({ facts: headers.slice(0, MAX_HEADERS).map(([header, value]) => [line(header), line(value)]) })}${block(answer.body)}`
        }</div>
      </div>
    </details>
  </section>`;
}

function sentHeaders({ id, type }: Delivery): Facts['facts'] {
  return [
    ['X-Service-Event', type],
    ['X-Service-Delivery', id],
    ['X-Service-Signature', 'made for each attempt'],
  ];
}

/** Image URLs are made for each attempt too. */
function sentBody({ id, type, createdAtMs, record }: Delivery): string {
  if (record.head === '') return 'The transaction was erased: nothing of it is kept.';
  const recordText = archivedText(redactedRecord(record));
  return envelopeBody({ id, type, createdAtMs, recordText });
}

function commandsOfOne({ id, state: name, transactionId }: Delivery): Command[] {
  const show = cmd('The same on the command line, answers in full')`delivery show ${id}`;
  const transaction = cmd('Its transaction')`transaction show ${transactionId}`;
  if (name === 'failed') return [cmd('Send it again')`delivery redeliver ${id}`, show, transaction];
  if (name === 'delivered')
    return [cmd('Send it once more, under the same id')`delivery redeliver ${id} --force`, show, transaction];
  return [show, transaction];
}
