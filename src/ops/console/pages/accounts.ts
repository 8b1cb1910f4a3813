import type { VNode } from 'preact';
import { noAccessReason, webhookState } from '../../../accounts/account-state.ts';
import { type AccountLists, firstAfter } from '../figures/account-index.ts';
import { commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { type TableRow, table } from '../html/table.ts';
import { badge, count, links, state } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

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
        ${table({
          caption: 'Accounts',
          columns: ['Id', 'Name', 'Access', 'Why not', { head: 'Keys', number: true }, 'Webhooks'],
          rows: found.map((id) => rowOf(parts, id, nowMs)),
          empty: text === '' ? 'No account was opened yet.' : 'No account has this id, or this in its name.',
        })}
        ${more === null ? null : html`<p class="pages"><a href=${`/accounts?${more}`}>Next ${ON_A_PAGE}</a></p>`}
      </section>
      ${commands([
        { what: 'Every account', words: ['account', 'list'] },
        { what: 'Open another one', words: ['account', 'open', 'ID', '--name', 'NAME'] },
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
  const afterId = Number(after ?? Number.NaN);
  const found: number[] = [];
  for (
    let at = Number.isNaN(afterId) ? 0 : firstAfter(accounts, ({ id }) => id > afterId);
    at < accounts.length;
    at++
  ) {
    const account = accounts[at];
    if (account === undefined) break;
    if (account.id !== wantedId && !account.name.includes(wanted)) continue;
    if (found.length === ON_A_PAGE) return { found, next: found.at(-1) };
    found.push(account.id);
  }
  return { found, next: undefined };
}

function keyFound({ directory }: PageContext['parts'], text: string): VNode | null {
  const key = directory.key(text);
  return key === undefined
    ? null
    : html`<section>Key ${links.key(text)} is of account ${links.account(key.entry.id)}.</section>`;
}

function rowOf({ directory }: PageContext['parts'], id: number, nowMs: number): TableRow {
  const entry = directory.account(id);
  const account = entry?.account;
  if (account === undefined) {
    const why = entry?.unreadable?.reason ?? 'it can not be read';
    return {
      id: `account-${id}`,
      cells: [links.account(id), '', badge('closed', 'bad'), line(why), 'unknown', 'unknown'],
    };
  }
  const reason = noAccessReason(account, nowMs);
  const keys = [...account.keys.values()];
  const states = keys.filter(({ active }) => active).map(({ webhook }) => webhookState(webhook).state);
  return {
    id: `account-${id}`,
    cells: [
      links.account(id),
      line(account.name),
      reason === undefined ? badge('access', 'good') : badge('no access', 'warn'),
      reason ?? '',
      keys.length,
      states.filter((name) => name !== 'none').map((name) => html`${state(name)} `),
    ],
  };
}
