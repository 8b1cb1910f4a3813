import type { VNode } from 'preact';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { link } from '../../answers/columns.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { type Shown, show } from '../html/parts.ts';
import { accountsPage } from './accounts.ts';

/** Whatever an operator has: an id, a prefix, part of a name. */
export async function findPage(context: PageContext): Promise<Page> {
  const { parts, query } = context;
  const text = (query.q ?? '').trim();
  const id = Number(text);
  const found: Shown[] = [];
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(id)) {
    const [event] = await parts.store.readStream(transactionStream(id));
    if (event !== undefined) found.push(['Transaction', link('transaction', id)]);
  }
  if (/^[0-9a-f-]{36}$/.test(text) && (await parts.queue.find(text)) !== undefined)
    found.push(['Delivery', link('delivery', text)]);
  if (parts.directory.key(text) !== undefined)
    found.push(['Key', link('key', text), ', webhook', link('webhook', text)]);
  const list: VNode =
    found.length === 0
      ? html`<p>No transaction, delivery or key. Accounts are below.</p>`
      : html`<ul>${found.map((each) => html`<li>${show(each)}</li>`)}</ul>`;
  const accounts = await accountsPage(context);
  return {
    ...accounts,
    title: `Find ${text}`,
    heading: `Found for ${text}`,
    parts: [html`<section>${list}</section>`, ...accounts.parts],
  };
}
