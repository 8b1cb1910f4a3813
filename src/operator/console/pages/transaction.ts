import type { VNode } from 'preact';
import { VISIBLE_STATUSES } from '../../../domain/transaction-events.ts';
import { DAY_MS, formatDateTime } from '../../../domain/values/date-time.ts';
import { printableData } from '../../../event-store/codec.ts';
import { type Facts, link, state, table } from '../../answers/columns.ts';
import {
  findTransaction,
  isMissing,
  RECORD_COLUMNS,
  recordAnswer,
  seenNow,
  timelineTable,
  visibilityFacts,
} from '../../answers/transaction.ts';
import { recordFacts } from '../figures/record-facts.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, form, grid, next, note, plural } from '../html/parts.ts';

/** Deliveries whose attempts are shown: an account has a handful of keys. */
const MAX_DELIVERIES = 50;
/** Ids that a command names. */
const MAX_IN_COMMAND = 20;
const ON_A_PAGE = 25;

export async function transactionPage({ parts, query, name }: PageContext): Promise<Page> {
  if (query.account) return dayPage(parts, query.account, query);
  const text = name === '' ? (query.id ?? '') : name;
  const above = form({
    action: '/transactions',
    fields: [{ name: 'id', label: 'Id of the transaction', size: 20 }],
    given: { id: text },
    submit: 'Show',
  });
  if (text === '') return { title: 'Transaction', parts: [above] };
  const id = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(id))
    return malformed('Transaction', [`${text} is no id of a transaction: it is a whole number`], above);
  const found = await findTransaction(
    id,
    { ...parts, accountOf: (accountId) => parts.directory.account(accountId) },
    { maxDeliveries: MAX_DELIVERIES },
  );
  if (isMissing(found)) return missing(id, found.isErased);
  const { events, deliveries } = found;
  const seen = seenNow(found);
  const record = events[0] && printableData(events[0]);
  const timeline = timelineTable(found, { personal: false });
  const isCut = deliveries.length > MAX_DELIVERIES;
  const failed = deliveries.filter(({ state: name }) => name === 'failed').map((each) => each.id);
  return {
    title: `Transaction ${id}`,
    heading: [`Transaction ${id}`, seen.visible ? state('visible', 'good') : state('not visible')],
    parts: [
      grid(
        { caption: 'What customers see', ...visibilityFacts(found, seen) },
        html`<section class="halves"><h2>Record</h2>${record === undefined ? 'No event was recorded.' : content(shownRecord(record))}</section>`,
      ),
      html`<section class="timeline">${content(timeline)}${isCut ? note(`Of ${plural(deliveries.length, 'delivery', 'deliveries')} the newest ${MAX_DELIVERIES}.`) : null}</section>`,
    ],
    commands: [
      cmd('The same on the command line, with every record')`transaction show ${id}`,
      ...(failed.length === 0
        ? []
        : [cmd('Send again what failed')`delivery redeliver ${failed.slice(0, MAX_IN_COMMAND)}`]),
      cmd('Who recorded what of it')`audit --transaction ${id}`,
    ],
  };
}

/** What an account's customers see of one day. */
async function dayPage(
  parts: PageContext['parts'],
  account: string,
  { day = '', after: continued = '' }: PageContext['query'],
): Promise<Page> {
  const above = dayForm(account, day);
  const [accountId, fromMs] = [Number(account), Date.parse(`${day}T00:00:00Z`)];
  const faults = [
    ...(/^\d{1,16}$/.test(account) && Number.isSafeInteger(accountId)
      ? []
      : [`${account} is no id of an account`]),
    ...(/^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(fromMs)
      ? []
      : [`${day} is no day, such as 2026-09-03`]),
  ];
  if (faults.length > 0) return malformed('Transactions of a day', faults, above);
  const [, afterMs, afterId] = /^(\d{1,15})-(\d{1,16})$/.exec(continued) ?? [];
  const after = afterMs === undefined ? undefined : { createdAtMs: Number(afterMs), id: Number(afterId) };
  const range = { fromMs, toMs: fromMs + DAY_MS - 1 };
  const query = { accountId, ...range, statuses: VISIBLE_STATUSES, limit: ON_A_PAGE, after };
  const { rows, hasMore } = await parts.view.page(query);
  const last = hasMore ? rows.at(-1) : undefined;
  const [from, to] = [formatDateTime(range.fromMs), formatDateTime(range.toMs)];
  return {
    title: `Transactions of account ${account} on ${day}`,
    parts: [
      above,
      table(`Created on ${day}, newest first`, RECORD_COLUMNS, {
        of: rows.map((row) => recordAnswer(accountId, row)),
        idOf: ({ id }) => id,
        empty: 'None is visible to the customer.',
      }),
      next(
        '/transactions',
        { account, day, after: last && `${last.createdAtMs}-${last.id}` },
        `Next ${ON_A_PAGE}`,
      ),
    ],
    commands: [
      cmd('The same on the command line')`transaction list --account ${account} --from ${from} --to ${to}`,
    ],
  };
}

export function dayForm(account: string | number, day: string): VNode {
  return form({
    action: '/transactions',
    fields: [
      { name: 'account', label: 'Transactions of account', size: 10 },
      { name: 'day', label: 'created on', size: 12, placeholder: '2026-09-03' },
    ],
    given: { account: String(account), day },
    submit: 'Show',
  });
}

function shownRecord(record: unknown): Facts {
  const facts = recordFacts(record).map(
    ([what, value]) => [what, what === 'account' ? link('account', Number(value)) : value] as const,
  );
  return { facts };
}

function missing(id: number, isErased: boolean): Page {
  const why = isErased
    ? 'It was erased: its events, its records and what receivers answered were removed. The operations say when and why.'
    : 'No event of it was ever recorded here, the view does not show it and nothing was sent of it: the core system did not deliver it, or its line was refused by the import. Import it, then it appears here.';
  const commands = isErased
    ? [cmd('Who erased it')`audit --transaction ${id}`]
    : [cmd('Import it')`transaction import FILE`, cmd('Events that were parked')`projection parked`];
  return notFound(`Transaction ${id}`, why, { commands });
}
