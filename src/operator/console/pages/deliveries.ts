import type { VNode } from 'preact';
import { DELIVERY_STATES, type DeliveryPlace } from '../../../push/queue/delivery-queue.ts';
import { table } from '../../answers/columns.ts';
import { DELIVERY_COLUMNS, deliveryAnswer, withHeldReasons } from '../../answers/delivery.ts';
import { DELIVERY_FIELDS, type DeliveryField, readDeliveryFilter } from '../../answers/filters.ts';
import { unknownName } from '../../answers/names.ts';
import { type Command, cmd, commands } from '../html/commands.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { malformed, notFound } from '../html/problems.ts';
import { tableOf } from '../html/table.ts';

const ON_A_PAGE = 50;
/** What one page reads of the log at most: some milliseconds. */
const MAX_READ = 2_000;
type Given = Readonly<Partial<Record<DeliveryField, string>>>;

/** Deliveries by the filters in the URL, newest first. */
export async function deliveriesPage({ parts, query }: PageContext): Promise<Page> {
  const given: Given = Object.fromEntries(
    DELIVERY_FIELDS.flatMap((field) =>
      query[field] === undefined || query[field] === '' ? [] : [[field, query[field].trim()]],
    ),
  );
  const read = readDeliveryFilter(given);
  if ('faults' in read) return withForm(malformed('Deliveries', read.faults), given);
  const accountOf = (id: number) => parts.directory.account(id);
  const ownerOf = (prefix: string) => parts.directory.key(prefix)?.entry.id;
  const unknown = await unknownName(read.given, { store: parts.store, accountOf, ownerOf });
  if (unknown !== undefined) return withForm(notFound('Deliveries', unknown), given);
  const after = query.after === undefined ? undefined : readPlace(query.after);
  if (query.after !== undefined && after === undefined)
    return withForm(notFound('Deliveries', `there is no delivery ${query.after} to continue after`), given);
  const limits = { limit: ON_A_PAGE, maxRead: MAX_READ };
  const { deliveries: found, next } = await parts.queue.page(read.filter, { ...limits, after });
  const deliveries = await withHeldReasons(found, accountOf, parts.clock.now());
  const isShort = next !== undefined && deliveries.length < ON_A_PAGE;
  return {
    title: 'Deliveries',
    main: html`<h1>Deliveries</h1>${form(given)}
      <section>
        ${tableOf(
          table('Deliveries, newest first', DELIVERY_COLUMNS, {
            of: deliveries.map(deliveryAnswer),
            idOf: ({ id }) => id,
            empty: isShort ? 'None among those that were looked through.' : 'No delivery matches.',
          }),
        )}
        ${isShort ? html`<p class="note">Looked through ${MAX_READ.toLocaleString('en-US')} deliveries of the log. A time or a key leaves fewer to look through.</p>` : null}
        ${next === undefined ? null : html`<p class="pages"><a href=${hrefOf({ ...given, after: `${next.createdAtMs}-${next.id}` })}>${isShort ? 'Look through older ones' : `Next ${ON_A_PAGE}`}</a></p>`}
      </section>
      ${commands(commandsOf(given))}`,
  };
}

function readPlace(text: string): DeliveryPlace | undefined {
  const [, ms, id] = /^(\d{1,15})-(.+)$/.exec(text) ?? [];
  return ms === undefined || id === undefined ? undefined : { createdAtMs: Number(ms), id };
}

function withForm(page: Page, given: Given): Page {
  return { ...page, main: html`${form(given)}${page.main}` };
}

function form(given: Given): VNode {
  const field = (name: DeliveryField, label: string, placeholder: string): VNode =>
    html`<label>${label}<input name=${name} value=${given[name] ?? ''} placeholder=${placeholder} size="14" autocomplete="off" /></label>`;
  return html`<form class="filters" action="/deliveries" method="get">
    <label>State
      <select name="state">
        <option value="">any</option>
        ${DELIVERY_STATES.map((name) => html`<option value=${name} selected=${given.state === name}>${name}</option>`)}
      </select>
    </label>
    ${field('key', 'Key', 'a1b2c3d4e5')}
    ${field('account', 'Account', '7')}
    ${field('transaction', 'Transaction', '70001')}
    ${field('since', 'Created since', '2026-01-01T00:00:00.000Z')}
    ${field('until', 'until', '2027-01-01T00:00:00.000Z')}
    <button type="submit">Show</button>
    <a href="/deliveries">all</a>
  </form>`;
}

function hrefOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((each): each is [string, string] => each[1] !== undefined);
  return `/deliveries?${new URLSearchParams(given)}`;
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
