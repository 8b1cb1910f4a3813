import { printableData } from '../../../event-store/codec.ts';
import { type Facts, link, state } from '../../answers/columns.ts';
import {
  findTransaction,
  isMissing,
  seenNow,
  timelineTable,
  visibilityFacts,
} from '../../answers/transaction.ts';
import { recordFacts, withoutDriver } from '../figures/record-facts.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, form, grid, note, plural } from '../html/parts.ts';

/** Deliveries whose attempts are shown: an account has a handful of keys. */
const MAX_DELIVERIES = 50;

export async function transactionPage({ parts, query, name }: PageContext): Promise<Page> {
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
  const timeline = timelineTable(found, (reason) => withoutDriver(reason, record));
  const isCut = deliveries.length > MAX_DELIVERIES;
  const hasFailed = deliveries.some(({ state: name }) => name === 'failed');
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
      ...(hasFailed
        ? [cmd('Find what failed, to send it again')`delivery list --transaction ${id} --state failed`]
        : []),
      cmd('Who recorded what of it')`audit --transaction ${id}`,
    ],
  };
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
