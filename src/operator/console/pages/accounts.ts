import type { VNode } from 'preact';
import {
  TRANSACTION_STREAMS,
  transactionIdOf,
  transactionStream,
} from '../../../domain/transaction-events.ts';
import { membersOf } from '../../../event-store/codec.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { ACCOUNT_COLUMNS, accountLine } from '../../answers/account.ts';
import { link, table } from '../../answers/columns.ts';
import { hasPlate } from '../../answers/transaction.ts';
import type { AccountLists } from '../figures/account-lists.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { type Page, type PageContext, unavailable } from '../html/layout.ts';
import { form, next, note, number, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const ID = /^\d{1,16}$/;

/** Accounts by id: those that a search finds, closed ones too; without one, those that are not closed. */
export async function accountsPage({ parts, figures, query }: PageContext): Promise<Page> {
  const { directory } = parts;
  const lists = await figures.lists();
  if ('unknown' in lists) return unavailable(lists.unknown);
  const text = (query.q ?? '').trim();
  const found = search(lists.value, text, Number(query.after ?? -1));
  const [shown, last] = [found.slice(0, ON_A_PAGE), found[ON_A_PAGE - 1]];
  const after = found.length > ON_A_PAGE ? String(last) : undefined;
  const key = directory.key(text);
  const nowMs = parts.clock.now();
  return {
    title: 'Accounts',
    parts: [
      form({
        action: '/accounts',
        fields: [{ name: 'q', label: 'Id, part of the name, or prefix of a key', size: 30 }],
        given: { q: text },
        submit: 'Search',
        all: `all ${number(lists.value.accounts.length)}`,
      }),
      key === undefined
        ? null
        : note(['Key', link('key', text), 'is of account', link('account', key.entry.id)]),
      table('Accounts', ACCOUNT_COLUMNS, {
        of: shown.flatMap((id) => directory.account(id) ?? []).map((entry) => accountLine(entry, nowMs)),
        idOf: ({ id }) => id,
        empty: text === '' ? 'No account was opened yet.' : 'No account has this id, or this in its name.',
      }),
      text === '' && lists.value.accounts.some(({ isClosed }) => isClosed)
        ? note(['Closed accounts are left out: a search finds them.'])
        : null,
      next('/accounts', { q: text, after }, `Next ${ON_A_PAGE}`),
    ],
    commands: [cmd('Every account')`account list`, cmd('Open another one')`account open ID --name NAME`],
  };
}

/** By id, or in the order of ids those whose name contains the text. */
function search({ accounts }: AccountLists, text: string, afterId: number): readonly number[] {
  const wanted = text.toLowerCase();
  const wantedId = ID.test(text) ? Number(text) : undefined;
  return accounts
    .filter(
      ({ id, name, isClosed }) =>
        !(id <= afterId) && (id === wantedId || name.includes(wanted)) && !(isClosed && text === ''),
    )
    .map(({ id }) => id);
}

/** Nobody keeps plates apart: the newest transactions are looked through. */
const MAX_LOOKED_AT = 2_000;
const MAX_WITH_PLATE = 20;
const MAYBE_PLATE = /\d/;

async function withPlate(text: string, store: Pick<EventStore, 'readBackwards'>): Promise<number[]> {
  const found = new Set<number>();
  let looked = 0;
  for (let before: number | undefined; looked < MAX_LOOKED_AT && found.size < MAX_WITH_PLATE; ) {
    const step = { prefixes: [TRANSACTION_STREAMS], before, limit: MAX_LOOKED_AT - looked };
    const { events, position, atStart } = await store.readBackwards(step);
    for (const { stream, data } of events) {
      const { number_plate } = membersOf(membersOf(data).vehicle);
      const id = transactionIdOf(stream);
      if (id !== undefined && typeof number_plate === 'string' && hasPlate({ number_plate }, text))
        found.add(id);
    }
    looked += Math.max(1, events.length);
    if (atStart) break;
    before = position;
  }
  return [...found].slice(0, MAX_WITH_PLATE);
}

/** Whatever an operator has: an id, a prefix, part of a name, a number plate. */
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
  for (const id of found.length === 0 && MAYBE_PLATE.test(text) ? await withPlate(text, parts.store) : [])
    found.push(['Transaction', link('transaction', id), 'of a vehicle with this plate']);
  const list: VNode =
    found.length === 0
      ? html`<p>No transaction, delivery or key, nor such a plate in the newest ${number(MAX_LOOKED_AT)} events. Accounts are below.</p>`
      : html`<ul>${found.map((each) => html`<li>${show(each)}</li>`)}</ul>`;
  const accounts = await accountsPage(context);
  return {
    ...accounts,
    title: `Find ${text}`,
    heading: `Found for ${text}`,
    parts: [html`<section>${list}</section>`, ...accounts.parts],
  };
}
