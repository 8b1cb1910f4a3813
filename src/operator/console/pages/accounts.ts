import type { VNode } from 'preact';
import { ACCOUNT_COLUMNS, accountLine } from '../../answers/account.ts';
import { table } from '../../answers/columns.ts';
import type { AccountLists } from '../figures/account-index.ts';
import { cmd, commands } from '../html/commands.ts';
import { html } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { tableOf } from '../html/table.ts';
import { count, link } from '../html/values.ts';

const ON_A_PAGE = 50;

/** Accounts by id, those that a search finds. */
export async function accountsPage({ parts, snapshots, query }: PageContext): Promise<Page> {
  const lists = await snapshots.accounts.lists();
  const text = (query.q ?? '').trim();
  const { found, next } = search(lists, text, query.after);
  const nowMs = parts.clock.now();
  const more =
    next === undefined ? null : new URLSearchParams({ ...(text !== '' && { q: text }), after: String(next) });
  return {
    title: 'Accounts',
    main: html`<h1>Accounts</h1>
      <form class="filters" action="/accounts" method="get">
        <label>Id, part of the name, or prefix of a key<input name="q" value=${text} size="30" autocomplete="off" /></label>
        <button type="submit">Search</button> <a href="/accounts">all ${count(lists.accounts.length)}</a>
      </form>
      ${keyFound(parts, text)}
      <section>
        ${tableOf(
          table('Accounts', ACCOUNT_COLUMNS, {
            of: found
              .flatMap((id) => parts.directory.account(id) ?? [])
              .map((entry) => accountLine(entry, nowMs)),
            idOf: ({ id }) => id,
            empty:
              text === '' ? 'No account was opened yet.' : 'No account has this id, or this in its name.',
          }),
        )}
        ${more === null ? null : html`<p class="pages"><a href=${`/accounts?${more}`}>Next ${ON_A_PAGE}</a></p>`}
      </section>
      ${commands([
        cmd('Every account')`account list`,
        cmd('Open another one')`account open ID --name NAME`,
      ])}`,
  };
}

/** By id, or in the order of ids those whose name contains the text. */
function search(
  { accounts }: AccountLists,
  text: string,
  after: string | undefined,
): { readonly found: readonly number[]; readonly next: number | undefined } {
  const wanted = text.toLowerCase();
  const wantedId = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  const afterId = Number(after) >= 0 ? Number(after) : -1;
  const found = accounts
    .filter(({ id, name }) => id > afterId && (id === wantedId || name.includes(wanted)))
    .map(({ id }) => id);
  const next = found.length > ON_A_PAGE ? found[ON_A_PAGE - 1] : undefined;
  return { found: found.slice(0, ON_A_PAGE), next };
}

function keyFound({ directory }: PageContext['parts'], text: string): VNode | null {
  const key = directory.key(text);
  return key === undefined
    ? null
    : html`<section>Key ${link('key', text)} is of account ${link('account', key.entry.id)}.</section>`;
}
