import type { VNode } from 'preact';
import { type RowReads, readKeys, type StoredKey } from '../../../accounts/rows/read-rows.ts';
import { detailsIn } from '../../../accounts/rows/rows-of.ts';
import { readAccounts, type StoredAccount } from '../../../accounts/rows/stored-account.ts';
import { ACCOUNTS, type AccountRow } from '../../../accounts/rows/tables.ts';
import { trimmed } from '../../../base/config/trimmed.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { Tables } from '../../../tables/tables.ts';
import { MAX_ACCOUNTS_COUNTED } from '../../accounts/account-figures.ts';
import { accountLine, accountShown } from '../../answers/account.ts';
import { link } from '../../print/document.ts';
import { searchable } from '../../search/search-text.ts';
import { cmd, copied } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { type Page, type PageContext, unavailable } from '../html/layout.ts';
import { form, listOf, next, note, number, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const ROWS_A_READ = 500;
/** The most accounts that a search looks at. */
const MAX_SEARCHED = 50_000;
const ID = /^\d{1,16}$/;

/** Accounts by id: those that a search finds, or without a search those that are not closed. */
export async function accountsPage({ parts, figures, query }: PageContext): Promise<Page> {
  const counts = await figures.accounts();
  if ('unknown' in counts) return unavailable(counts.unknown);
  const text = trimmed(query.q ?? '');
  const after = ID.test(query.after ?? '') ? Number(query.after) : -1;
  const { ids, next: place } = await search(parts.accounts, text, after);
  const key = await findKey(parts.accounts, text);
  const nowMs = parts.clock.now();
  const shown = (entry: StoredAccount) => {
    const line = accountLine(entry, nowMs);
    return { ...accountShown(entry, line, nowMs), name: line.name };
  };
  const accounts = (await readAccounts(parts.accounts, ids)).map(shown);
  const isShort = place !== undefined && ids.length < ON_A_PAGE;
  return {
    title: 'Accounts',
    parts: [
      form({
        action: '/accounts',
        fields: [{ name: 'q', label: 'Id, part of the name, or prefix of a key' }],
        given: { q: text },
        submit: 'Search',
        all: `all ${number(counts.value.accounts, MAX_ACCOUNTS_COUNTED)}`,
      }),
      key === undefined
        ? null
        : note(['Key', link('key', text), 'belongs to account', link('account', key.accountId)]),
      listOf('Accounts', accounts, { id: 'account' }),
      text === '' ? note('Closed accounts are left out: a search finds them.') : null,
      isShort ? note(`Searched ${number(MAX_SEARCHED)} accounts.`) : null,
      next(
        '/accounts',
        { q: text, after: place === undefined ? undefined : String(place) },
        isShort ? 'Search the next ones' : `Next ${ON_A_PAGE}`,
      ),
    ],
    commands: [cmd('All accounts')`account list`, cmd('Open an account')`account open ID --name NAME`],
  };
}

/**
 * Finds the account with an id, and then those whose name contains the text, in the order of their ids. `next` is the id to
 * continue after, if there may be more.
 */
async function search(
  tables: RowReads,
  text: string,
  afterId: number,
): Promise<{ readonly ids: readonly number[]; readonly next?: number }> {
  const wanted = searchable(text);
  const wantedId = ID.test(text) && Number.isSafeInteger(Number(text)) && afterId < 0 ? [Number(text)] : [];
  const ids = (await tables.get(ACCOUNTS, wantedId, ['id'])).map(({ id }) => id);
  const isFound = ({ id, name, details }: AccountRow): boolean => {
    if (text === '') return details === null || detailsIn(details).closed === null;
    return !ids.includes(id) && wanted !== '' && searchable(name ?? '').includes(wanted);
  };
  let after = { id: afterId };
  for (let searched = 0; searched < MAX_SEARCHED; searched += ROWS_A_READ) {
    const rows = await tables.find(ACCOUNTS, { index: 'key', after, limit: ROWS_A_READ });
    for (const row of rows.filter(isFound)) {
      if (ids.length === ON_A_PAGE) return { ids, next: ids.at(-1) ?? afterId };
      ids.push(row.id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_A_READ) return { ids };
    after = last;
  }
  return { ids, next: after.id };
}

async function findKey(tables: Pick<Tables, 'get'>, prefix: string): Promise<StoredKey | undefined> {
  return (await readKeys(tables, [prefix])).get(prefix);
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
  if ((await findKey(parts.accounts, text)) !== undefined) found.push(['Key', link('key', text)]);
  const list: VNode =
    found.length === 0
      ? html`<p>No transaction, delivery or key has this id or prefix. Matching accounts are listed below. To find a number plate: ${copied(['transaction', 'list', '--account', 'ID', '--plate', 'TEXT'])}</p>`
      : html`<ul>${found.map((each) => html`<li>${show(each)}</li>`)}</ul>`;
  const accounts = await accountsPage(context);
  return {
    ...accounts,
    title: `Find ${text}`,
    heading: `Found for ${text}`,
    parts: [html`<section>${list}</section>`, ...accounts.parts],
  };
}
