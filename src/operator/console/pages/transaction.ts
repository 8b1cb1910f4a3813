import type { VNode } from 'preact';
import { printableData } from '../../../event-store/codec.ts';
import {
  findTransaction,
  isMissing,
  seenNow,
  timelineTable,
  visibilityFacts,
} from '../../answers/transaction.ts';
import { recordFacts, withoutDriver } from '../figures/record-facts.ts';
import { type Command, cmd, commands } from '../html/commands.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { malformed, notFound } from '../html/problems.ts';
import { facts, sectionOf, tableOf } from '../html/table.ts';
import { badge, link, plural } from '../html/values.ts';

/** Deliveries whose attempts are shown: an account has a handful of keys. */
const MAX_DELIVERIES = 50;

export async function transactionPage({ parts, query, name }: PageContext): Promise<Page> {
  const text = name === '' ? (query.id ?? '') : name;
  if (text === '') return { title: 'Transaction', main: html`<h1>Transaction</h1>${form('')}` };
  const id = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(id)) {
    const page = malformed('Transaction', [`${text} is no id of a transaction: it is a whole number`]);
    return { ...page, main: html`${form(text)}${page.main}` };
  }
  const found = await findTransaction(
    id,
    { ...parts, accountOf: (accountId) => parts.directory.account(accountId) },
    { maxDeliveries: MAX_DELIVERIES },
  );
  if (isMissing(found)) return missing(id, found.isErased);
  const { events, deliveries } = found;
  const seen = seenNow(found);
  const record = events[0] && printableData(events[0]);
  return {
    title: `Transaction ${id}`,
    main: html`<h1>Transaction ${id} ${seen.visible ? badge('visible', 'good') : badge('not visible', 'quiet')}</h1>
      <div class="grid">
        <section><h2>What customers see</h2>${sectionOf(visibilityFacts(found, seen))}</section>
        <section class="halves"><h2>Record</h2>${record === undefined ? 'No event was recorded.' : facts(recordFacts(record).map(([what, value]) => [what, what === 'account' ? link('account', Number(value)) : value] as const))}</section>
      </div>
      <section class="timeline">${tableOf(timelineTable(found, (reason) => withoutDriver(reason, record)))}
        ${deliveries.length > MAX_DELIVERIES ? html`<p class="note">Of ${plural(deliveries.length, 'delivery', 'deliveries')} the newest ${MAX_DELIVERIES}.</p>` : null}
      </section>
      ${commands(
        commandsOf(
          id,
          deliveries.some((each) => each.state === 'failed'),
        ),
      )}`,
  };
}

function form(text: string): VNode {
  return html`<form class="filters" action="/transactions" method="get">
    <label>Id of the transaction<input name="id" value=${text} size="20" autocomplete="off" /></label>
    <button type="submit">Show</button>
  </form>`;
}

function missing(id: number, isErased: boolean): Page {
  const why = isErased
    ? 'It was erased: its events, its records and what receivers answered were removed. The operations say when and why.'
    : 'No event of it was ever recorded here, the view does not show it and nothing was sent of it: the core system did not deliver it, or its line was refused by the import. Import it, then it appears here.';
  const list: Command[] = isErased
    ? [cmd('Who erased it')`audit --transaction ${id}`]
    : [cmd('Import it')`transaction import FILE`, cmd('Events that were parked')`projection parked`];
  return notFound(`Transaction ${id}`, why, list);
}

function commandsOf(id: number, hasFailed: boolean): Command[] {
  const again = cmd('Find what failed, to send it again')`delivery list --transaction ${id} --state failed`;
  return [
    cmd('The same on the command line, with every record')`transaction show ${id}`,
    ...(hasFailed ? [again] : []),
    cmd('Who recorded what of it')`audit --transaction ${id}`,
  ];
}
