import type { VNode } from 'preact';
import { withHeldReason } from '../../../deliveries/describe-delivery.ts';
import {
  DELIVERY_STATES,
  type DeliveryFilter,
  type DeliveryPlace,
  type DeliverySummary,
} from '../../../deliveries/queue/delivery-queue.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { parseDateTime } from '../../../domain/values/date-time.ts';
import { type Command, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { malformed, notFound } from '../html/problems.ts';
import { table } from '../html/table.ts';
import { links, state, time } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

const ON_A_PAGE = 50;
/** What one page reads of the log at most: some milliseconds. */
const MAX_READ = 2_000;
export const FIELDS = ['state', 'key', 'account', 'transaction', 'since', 'until'] as const;

type Given = Readonly<Partial<Record<(typeof FIELDS)[number], string>>>;

/** Deliveries by the filters in the URL, newest first. */
export async function deliveriesPage({ parts, query }: PageContext): Promise<Page> {
  const given: Given = Object.fromEntries(
    FIELDS.flatMap((field) =>
      query[field] === undefined || query[field] === '' ? [] : [[field, query[field].trim()]],
    ),
  );
  const read = readFilter(given);
  if ('faults' in read) return withForm(malformed('Deliveries', read.faults), given);
  const unknownName = await nameFault(parts, read.filter);
  if (unknownName !== undefined) return withForm(notFound('Deliveries', unknownName), given);
  const after = query.after === undefined ? undefined : readPlace(query.after);
  if (query.after !== undefined && after === undefined)
    return withForm(notFound('Deliveries', `there is no delivery ${query.after} to continue after`), given);
  const limits = { limit: ON_A_PAGE, maxRead: MAX_READ };
  const { deliveries: found, next } = await parts.reads.page(read.filter, { ...limits, after });
  const accountOf = (id: number) => parts.directory.account(id)?.account;
  const nowMs = parts.clock.now();
  const deliveries = found.map((delivery) => withHeldReason(delivery, accountOf, nowMs));
  const isShort = next !== undefined && deliveries.length < ON_A_PAGE;
  return {
    title: 'Deliveries',
    main: html`<h1>Deliveries</h1>${form(given)}
      <section>
        ${deliveriesTable(deliveries, isShort ? 'None among those that were looked through.' : 'No delivery matches.')}
        ${isShort ? html`<p class="note">Looked through ${MAX_READ.toLocaleString('en-US')} deliveries of the log. A time or a key leaves fewer to look through.</p>` : null}
        ${next === undefined ? null : html`<p class="pages"><a href=${hrefOf({ ...given, after: `${next.createdAtMs}-${next.id}` })}>${isShort ? 'Look through older ones' : `Next ${ON_A_PAGE}`}</a></p>`}
      </section>
      ${commands(commandsOf(given))}`,
  };
}

function deliveriesTable(deliveries: readonly DeliverySummary[], empty: string): VNode {
  return table({
    caption: 'Deliveries, newest first',
    columns: ['Created', 'Delivery', 'State', 'Why', 'Key', 'Account', 'Transaction', 'Type', 'Next attempt'],
    rows: deliveries.map(
      ({ id, state: name, reason, prefix, accountId, transactionId, type, createdAtMs, dueAtMs }) => ({
        id: `delivery-${id}`,
        cells: [
          time(createdAtMs),
          links.delivery(id),
          state(name),
          line(reason ?? ''),
          links.webhook(prefix),
          links.account(accountId),
          links.transaction(transactionId),
          type,
          time(dueAtMs),
        ],
      }),
    ),
    empty,
  });
}

function readPlace(text: string): DeliveryPlace | undefined {
  const [, ms, id] = /^(\d{1,15})-(.+)$/.exec(text) ?? [];
  return ms === undefined || id === undefined ? undefined : { createdAtMs: Number(ms), id };
}

function readFilter(
  given: Given,
): { readonly filter: DeliveryFilter } | { readonly faults: readonly string[] } {
  const faults: string[] = [];
  const id = (field: 'account' | 'transaction'): number | undefined => {
    const text = given[field];
    if (text === undefined) return undefined;
    if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
      faults.push(`${field}: ${text} is no id`);
    return Number(text);
  };
  const at = (field: 'since' | 'until'): number | undefined => {
    const text = given[field];
    if (text === undefined) return undefined;
    const ms = parseDateTime(text);
    if (ms === undefined) faults.push(`${field}: ${text} is no time such as 2026-09-01T00:00:00Z`);
    return ms;
  };
  const { key, state: name } = given;
  if (key !== undefined && !/^[a-z0-9]{10}$/.test(key))
    faults.push('key: the prefix of a key is wanted, its 10 characters');
  const wanted = DELIVERY_STATES.find((known) => known === name);
  if (name !== wanted) faults.push(`state: ${name} is none of ${DELIVERY_STATES.join(', ')}`);
  const filter = {
    prefix: key,
    state: wanted,
    accountId: id('account'),
    transactionId: id('transaction'),
    sinceMs: at('since'),
    untilMs: at('until'),
  };
  if ((filter.sinceMs ?? 0) > (filter.untilMs ?? Infinity))
    faults.push('since is after until: nothing can be between them');
  return faults.length > 0 ? { faults } : { filter };
}

/** A name that was never recorded is an error, not an empty list. */
async function nameFault(
  { directory, store }: PageContext['parts'],
  { prefix, accountId, transactionId }: DeliveryFilter,
): Promise<string | undefined> {
  const owner = prefix === undefined ? undefined : directory.key(prefix)?.entry.id;
  if (prefix !== undefined && owner === undefined) return `No key has the prefix ${prefix}.`;
  if (accountId !== undefined && directory.account(accountId) === undefined)
    return `Account ${accountId} is not known.`;
  if (owner !== undefined && accountId !== undefined && owner !== accountId) {
    return `The key ${prefix} is of account ${owner}, not of account ${accountId}.`;
  }
  if (transactionId === undefined) return undefined;
  const stream = transactionStream(transactionId);
  const [first] = await store.readStream(stream);
  if (first === undefined && !(await store.isErased(stream)))
    return `Transaction ${transactionId} is not known.`;
  return undefined;
}

function withForm(page: Page, given: Given): Page {
  return { ...page, main: html`${form(given)}${page.main}` };
}

function form(given: Given): VNode {
  const field = (name: (typeof FIELDS)[number], label: string, placeholder: string): VNode =>
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
  const options = FIELDS.flatMap((field) => (given[field] === undefined ? [] : [`--${field}`, given[field]]));
  const list = { what: 'The same on the command line', words: ['delivery', 'list', ...options] };
  const follow = { what: 'As they change', words: ['delivery', 'list', ...options, '--follow'] };
  const { state: name, key, since, until } = given;
  if (name !== 'failed' || key === undefined) return [list, follow];
  const range = [
    ...(since === undefined ? [] : ['--since', since]),
    ...(until === undefined ? [] : ['--until', until]),
  ];
  const words = ['delivery', 'redeliver', '--failed', '--key', key, ...range];
  return [{ what: 'Send all failed ones of this key again', words }, list, follow];
}
