import type { VNode } from 'preact';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { link } from '../html/values.ts';
import { accountsPage } from './accounts.ts';

/** Whatever an operator has: an id, a prefix, part of a name. */
export async function findPage(context: PageContext): Promise<Page> {
  const { parts, query } = context;
  const text = (query.q ?? '').trim();
  const found: VNode[] = [];
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) {
    const id = Number(text);
    const [event] = await parts.store.readStream(transactionStream(id));
    if (event !== undefined) found.push(html`<li>Transaction ${link('transaction', id)}</li>`);
  }
  if (/^[0-9a-f-]{36}$/.test(text) && (await parts.queue.find(text)) !== undefined) {
    found.push(html`<li>Delivery ${link('delivery', text)}</li>`);
  }
  if (parts.directory.key(text) !== undefined) {
    found.push(html`<li>Key ${link('key', text)}, webhook ${link('webhook', text)}</li>`);
  }
  const accounts = await accountsPage(context);
  return {
    title: `Find ${text}`,
    main: html`<section><h2>Found for ${line(text)}</h2>
        ${found.length === 0 ? html`<p>No transaction, delivery or key. Accounts are below.</p>` : html`<ul>${found}</ul>`}
      </section>
      ${accounts.main}`,
  };
}
