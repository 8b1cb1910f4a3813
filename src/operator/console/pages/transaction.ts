import { readSummary } from '../../../accounts/rows/stored-account.ts';
import { projectEvent } from '../../../records/project-event.ts';
import {
  type FoundTransaction,
  findTransaction,
  isMissing,
  recordAnswer,
  transactionShown,
} from '../../answers/transaction.ts';
import { state } from '../../print/document.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, notFound, type Page, type PageContext } from '../html/layout.ts';
import { documentOf, form, listOf, note } from '../html/parts.ts';

/** The most deliveries whose attempts are shown. An account has only a handful of keys. */
const MAX_DELIVERIES = 50;
/** The most ids that a command names. */
const MAX_IN_COMMAND = 20;

export async function transactionPage({ parts, query, name }: PageContext): Promise<Page> {
  const text = name === '' ? (query.id ?? '') : name;
  const above = form({
    action: '/transactions',
    fields: [{ name: 'id', label: 'Id of the transaction' }],
    given: { id: text },
    submit: 'Show',
  });
  if (text === '') return { title: 'Transaction', parts: [above] };
  const id = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(id))
    return malformed(
      'Transaction',
      [`${text} is not the id of a transaction: an id is a whole number`],
      above,
    );
  const found = await findTransaction(
    id,
    { ...parts, accountOf: (accountId) => readSummary(parts.accounts, accountId) },
    { maxDeliveries: MAX_DELIVERIES },
  );
  if (isMissing(found)) return missing(id, found.isErased);
  const { deliveries } = found;
  const { timeline, events, record: _, ...visibility } = transactionShown(found, { personal: false });
  const record = recordOf(found);
  const failed = deliveries.filter(({ state: name }) => name === 'failed').map((each) => each.id);
  return {
    title: `Transaction ${id}`,
    heading: [`Transaction ${id}`, visibility.visible ? state('visible', 'good') : state('not visible')],
    parts: [
      html`<div class="grid">
        ${documentOf({ ...visibility, events: events.length }, 'Visibility', { id: 'transaction' })}
        ${record === undefined ? null : documentOf(record, 'Record')}
      </div>`,
      listOf('Timeline', timeline),
      deliveries.length > MAX_DELIVERIES
        ? note(`The newest ${MAX_DELIVERIES} of ${deliveries.length} deliveries are shown.`)
        : null,
    ],
    commands: [
      cmd('The same on the command line, with every record')`transaction show ${id}`,
      ...(failed.length === 0
        ? []
        : [cmd('Send again what failed')`delivery redeliver ${failed.slice(0, MAX_IN_COMMAND)}`]),
      cmd('Its events and their authors')`audit --transaction ${id}`,
    ],
  };
}

/** The record by its first event, without what may name a person. It is also shown while no customer sees it. */
function recordOf({ events: [first] }: FoundTransaction): object | undefined {
  const projected = first && projectEvent(first);
  if (projected === undefined || !('change' in projected) || projected.change.kind !== 'show')
    return undefined;
  const { row } = projected.change;
  const { id: _, number_plate: __, ...record } = recordAnswer(row.accountId, row);
  return record;
}

function missing(id: number, isErased: boolean): Page {
  const why = isErased
    ? 'It was erased: its events, its records and what receivers answered were removed. The operations say when and why.'
    : 'No event of it was ever recorded here, the view does not show it, and nothing was sent. Either the core system did not deliver it, or the import refused its line. It appears here once it is imported.';
  const commands = isErased
    ? [cmd('The erasure and its author')`audit --transaction ${id}`]
    : [cmd('Import it')`transaction import FILE`, cmd('Parked events')`projection parked`];
  return notFound(`Transaction ${id}`, why, { commands });
}
