import type { VNode } from 'preact';
import { readSummary } from '../../../accounts/rows/stored-account.ts';
import { FuelError, reasonOf } from '../../../base/errors.ts';
import { SHOWN_STATES, type ShownFilter, type ShownState, storedFilter } from '../../../push/held.ts';
import type { Attempt, Delivery } from '../../../push/queue/delivery.ts';
import type { DeliveryPlace } from '../../../push/queue/delivery-queue.ts';
import { attemptAnswer, attemptName, deliveryAnswer, withHeldReasons } from '../../answers/delivery.ts';
import { type DeliveryChoice, deliveryFilter, readId, readTime } from '../../answers/filters.ts';
import { unknownName } from '../../answers/names.ts';
import { factsOf, state } from '../../print/document.ts';
import { type Command, cmd } from '../html/commands.ts';
import { block, html } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, documentOf, type Field, form, listOf, next, note, number } from '../html/parts.ts';

const ON_A_PAGE = 25;
/** The most deliveries that one page reads, which takes some milliseconds. */
const MAX_READ = 2_000;
const FIELDS: readonly (Field & { readonly name: keyof DeliveryChoice })[] = [
  { name: 'state', label: 'State', choices: SHOWN_STATES },
  { name: 'key', label: 'Key', placeholder: 'a1b2c3d4e5' },
  { name: 'account', label: 'Account', placeholder: '7' },
  { name: 'transaction', label: 'Transaction', placeholder: '70001' },
  { name: 'since', label: 'Created since', placeholder: '2026-01-01T00:00:00.000Z' },
  { name: 'until', label: 'until', placeholder: '2027-01-01T00:00:00.000Z' },
];
type Given = Readonly<Partial<Record<keyof DeliveryChoice, string>>>;

/** The parameters by which deliveries are filtered. */
export const DELIVERY_FIELDS = FIELDS.map(({ name }) => name);

/** Deliveries by the filters in the URL, newest first. */
export async function deliveriesPage({ parts, query }: PageContext): Promise<Page> {
  const given: Given = Object.fromEntries(
    DELIVERY_FIELDS.flatMap((field) => (query[field] ? [[field, query[field].trim()]] : [])),
  );
  const above = form({ action: '/deliveries', fields: FIELDS, given, submit: 'Show', all: 'all' });
  let choice: DeliveryChoice;
  let filter: ShownFilter;
  try {
    choice = readChoice(given);
    filter = deliveryFilter(choice);
  } catch (error) {
    if (error instanceof FuelError) return malformed('Deliveries', [reasonOf(error)], above);
    throw error;
  }
  const accountOf = (id: number) => readSummary(parts.accounts, id);
  const after = readPlace(query.after);
  const why =
    query.after !== undefined && after === undefined
      ? `there is no delivery ${query.after} to continue after`
      : await unknownName(choice, parts.store, parts.accounts);
  if (why !== undefined) return notFound('Deliveries', why, { above });
  const limits = { limit: ON_A_PAGE, maxRead: MAX_READ };
  const { deliveries: found, next: place } = await parts.queue.page(
    await storedFilter(filter, { queue: parts.queue, rows: parts.accounts, nowMs: parts.clock.now() }),
    { ...limits, after },
  );
  const deliveries = await withHeldReasons(found, accountOf, parts.clock.now());
  const isShort = place !== undefined && deliveries.length < ON_A_PAGE;
  return {
    title: 'Deliveries',
    parts: [
      above,
      listOf('Deliveries, newest first', deliveries.map(deliveryAnswer), { id: 'delivery' }),
      isShort
        ? note(`Searched ${number(MAX_READ)} deliveries. Give a time or a key to narrow the search.`)
        : null,
      next(
        '/deliveries',
        { ...given, after: place && `${place.createdAtMs}-${place.transactionId}-${place.prefix}` },
        isShort ? 'Search older ones' : `Next ${ON_A_PAGE}`,
      ),
    ],
    commands: commandsOf(given),
  };
}

/** Throws `USAGE`, with the name of the field, for the first value that can't be read. */
function readChoice({ key, ...given }: Given): DeliveryChoice {
  const read = <T>(name: keyof typeof given, reader: (text: string) => T): T | undefined => {
    try {
      return given[name] === undefined ? undefined : reader(given[name]);
    } catch (error) {
      throw error instanceof FuelError ? new FuelError('USAGE', `${name}: ${error.message}`) : error;
    }
  };
  return {
    key,
    state: read('state', readState),
    account: read('account', readId),
    transaction: read('transaction', readId),
    since: read('since', readTime),
    until: read('until', readTime),
  };
}

function readState(text: string): ShownState {
  const known = SHOWN_STATES.find((name) => name === text);
  if (known !== undefined) return known;
  throw new FuelError('USAGE', `must be one of ${SHOWN_STATES.join(', ')}`);
}

function readPlace(text: string | undefined): DeliveryPlace | undefined {
  const [, ms, id, prefix] = /^(\d{1,15})-(\d{1,16})-(.+)$/.exec(text ?? '') ?? [];
  if (prefix === undefined) return undefined;
  return { createdAtMs: Number(ms), transactionId: Number(id), prefix };
}

function commandsOf(given: Given): Command[] {
  const optionsOf = (fields: readonly (keyof DeliveryChoice)[]): string[] =>
    fields.flatMap((field) => (given[field] === undefined ? [] : [`--${field}`, given[field]]));
  const options = optionsOf(DELIVERY_FIELDS);
  const list = cmd('The same on the command line')`delivery list ${options}`;
  const follow = cmd('Follow them as they change')`delivery list ${options} --follow`;
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
      'There is no such delivery. Deliveries that ended longer ago than the retention were removed; tests of webhooks are not in the log.',
      { commands: [cmd('The newest deliveries')`delivery list`] },
    );
  }
  const accountOf = (of: number) => readSummary(parts.accounts, of);
  const [held = delivery] = await withHeldReasons([delivery], accountOf, parts.clock.now());
  const { attempts, cycle, dueAtMs } = delivery;
  return {
    title: `Delivery ${id}`,
    heading: [`Delivery ${id}`, state(held.state)],
    parts: [
      documentOf({ ...deliveryAnswer(held), redeliveries: cycle - 1 }),
      dueAtMs === null
        ? null
        : note('Due is the time of the next attempt, or the end of the present attempt’s lease.'),
      html`<h2>Attempts, newest first</h2>`,
      ...(attempts.length === 0
        ? [html`<section>No attempt was recorded.</section>`]
        : attempts.toReversed().map((attempt, at) => attemptSection(attempt, at === 0))),
    ],
    commands: commandsOfOne(delivery),
  };
}

/** An attempt with the receiver's answer, which is untrusted text. */
function attemptSection(attempt: Attempt, isLast: boolean): VNode {
  const { cycle, number } = attempt;
  const { headers, body, ...shown } = attemptAnswer(attempt);
  const some = Object.fromEntries(Object.entries(headers ?? {}).slice(0, MAX_HEADERS));
  return html`<section id=${`attempt-${cycle}-${number}`}>
    <h3>${attemptName(shown)}</h3>
    ${content({ facts: factsOf(shown) })}
    <details id=${`answer-${cycle}-${number}`} open=${isLast}>
      <summary>The receiver’s answer</summary>
      ${body === null ? note('No answer came.') : html`${content({ facts: Object.entries(some) })}${block(body)}`}
    </details>
  </section>`;
}

function commandsOfOne({ id, state: name, transactionId }: Delivery): Command[] {
  const show = cmd('The same on the command line, answers in full')`delivery show ${id}`;
  const transaction = cmd('Its transaction')`transaction show ${transactionId}`;
  if (name === 'failed') return [cmd('Send it again')`delivery redeliver ${id}`, show, transaction];
  if (name === 'delivered')
    return [cmd('Send it again under the same id')`delivery redeliver ${id} --force`, show, transaction];
  return [show, transaction];
}
