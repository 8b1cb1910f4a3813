import type { VNode } from 'preact';
import { trimmed } from '../../../base/config/trimmed.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { AccountLists } from '../../answers/account.ts';
import { accountLine } from '../../answers/account.ts';
import { link } from '../../print/document.ts';
import { searchable } from '../../search/search-text.ts';
import { cmd, copied } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { type Page, type PageContext, unavailable } from '../html/layout.ts';
import { form, listOf, next, note, number, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const ID = /^\d{1,16}$/;

/** Accounts by id: those that a search finds, or without a search those that are not closed. */
export async function accountsPage({ parts, figures, query }: PageContext): Promise<Page> {
  const { directory } = parts;
  const lists = await figures.lists();
  if ('unknown' in lists) return unavailable(lists.unknown);
  const text = trimmed(query.q ?? '');
  const found = search(lists.value, text, Number(query.after ?? -1));
  const [shown, last] = [found.slice(0, ON_A_PAGE), found[ON_A_PAGE - 1]];
  const after = found.length > ON_A_PAGE ? String(last) : undefined;
  const key = directory.key(text);
  const nowMs = parts.clock.now();
  const accounts = shown
    .flatMap((id) => directory.account(id) ?? [])
    .map((entry) => accountLine(entry, nowMs));
  return {
    title: 'Accounts',
    parts: [
      form({
        action: '/accounts',
        fields: [{ name: 'q', label: 'Id, part of the name, or prefix of a key' }],
        given: { q: text },
        submit: 'Search',
        all: `all ${number(lists.value.accounts.length)}`,
      }),
      key === undefined
        ? null
        : note(['Key', link('key', text), 'belongs to account', link('account', key.entry.id)]),
      listOf('Accounts', accounts, { id: 'account' }),
      text === '' && lists.value.accounts.some(({ isClosed }) => isClosed)
        ? note('Closed accounts are left out: a search finds them.')
        : null,
      next('/accounts', { q: text, after }, `Next ${ON_A_PAGE}`),
    ],
    commands: [cmd('All accounts')`account list`, cmd('Open an account')`account open ID --name NAME`],
  };
}

/** Finds the account with an id, and those whose name contains the text. Returns ids in their order. */
function search({ accounts }: AccountLists, text: string, afterId: number): readonly number[] {
  const wanted = searchable(text);
  const wantedId = ID.test(text) ? Number(text) : undefined;
  return accounts
    .filter(
      ({ id, name, isClosed }) =>
        !(id <= afterId) &&
        (id === wantedId || (text === '' ? !isClosed : wanted !== '' && name.includes(wanted))),
    )
    .map(({ id }) => id);
}

/** Finds whatever an operator has: an id, a prefix, or part of a name. */
export async function findPage(context: PageContext): Promise<Page> {
  const { parts, query } = context;
  const text = trimmed(query.q ?? '');
  const id = Number(text);
  const found: Shown[] = [];
  if (ID.test(text) && Number.isSafeInteger(id)) {
    const [event] = await parts.store.readStream(transactionStream(id));
    if (event !== undefined) found.push(['Transaction', link('transaction', id)]);
  }
  if (/^[0-9a-f-]{36}$/.test(text) && (await parts.queue.find(text)) !== undefined)
    found.push(['Delivery', link('delivery', text)]);
  if (parts.directory.key(text) !== undefined) found.push(['Key', link('key', text)]);
  const list: VNode =
    found.length === 0
      ? html`<p>No transaction, delivery or key. Accounts are below. To find a number plate: ${copied(['transaction', 'list', '--account', 'ID', '--plate', 'TEXT'])}</p>`
      : html`<ul>${found.map((each) => html`<li>${show(each)}</li>`)}</ul>`;
  const accounts = await accountsPage(context);
  return {
    ...accounts,
    title: `Find ${text}`,
    heading: `Found for ${text}`,
    parts: [html`<section>${list}</section>`, ...accounts.parts],
  };
}
