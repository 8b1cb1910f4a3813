import type { VNode } from 'preact';
import { keyIn } from '../../../accounts/rows/rows-of.ts';
import { ACCOUNTS, KEYS, type KeyRow } from '../../../accounts/rows/tables.ts';
import type { LaneStreak } from '../../../push/queue/delivery.ts';
import type { Tables } from '../../../tables/tables.ts';
import { MAX_ACCOUNTS_COUNTED } from '../../accounts/account-figures.ts';
import { webhookLine } from '../../answers/webhook.ts';
import { MAX_FAILING } from '../../checks/facts.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, type Page, type PageContext, unavailable } from '../html/layout.ts';
import { href, listOf, next, number, orUnknown, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const STATES = ['disabled', 'failing', 'active'] as const;
type State = (typeof STATES)[number];
type Streaks = ReadonlyMap<string, LaneStreak>;

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage({ parts, figures, query }: PageContext): Promise<Page> {
  const wanted = STATES.find((state) => state === query.state);
  if (query.state && wanted === undefined) {
    const fault = `${query.state} is not a state of webhooks: they are ${STATES.join(', ')}`;
    return malformed('Webhooks', [fault]);
  }
  const [failing, accounts] = await Promise.all([figures.failing(), figures.accounts()]);
  if ('unknown' in accounts) return unavailable(accounts.unknown);
  const streaks = new Map((failing.value ?? []).map((streak) => [streak.prefix, streak]));
  const sections = wanted === undefined ? STATES : [wanted];
  const rows = await listed(parts.accounts, sections, { streaks, after: query.after ?? '' });
  const shown = rows.slice(0, ON_A_PAGE);
  const after = rows.length > ON_A_PAGE ? shown.at(-1)?.prefix : undefined;
  const count = (text: string, of: number): string => `${text} ${number(of, MAX_ACCOUNTS_COUNTED)}`;
  return {
    title: 'Webhooks',
    parts: [
      filters(wanted, {
        all: count('all', accounts.value.webhooks),
        disabled: count('switched off', accounts.value.disabledWebhooks),
        failing: ['failing', orUnknown(failing, (of) => number(of.length, MAX_FAILING))],
        active: 'the others',
      }),
      listOf('Webhooks of active keys, worst first', await linesOf(shown, streaks, parts.accounts)),
      next('/webhooks', { state: wanted, after }, `Next ${ON_A_PAGE}`),
    ],
    commands: [
      cmd('All keys with their webhooks')`key list`,
      cmd('Accounts with the worst state of their webhooks')`account list`,
    ],
  };
}

/** Returns the rows of a page, and one more if there is one. They begin with the first if that to continue after is not listed. */
async function listed(
  tables: Tables,
  sections: readonly State[],
  { streaks, after }: { readonly streaks: Streaks; readonly after: string },
): Promise<KeyRow[]> {
  const [place] = await tables.get(KEYS, [after]);
  const begun = place && stateOf(place, streaks);
  const from = begun === undefined ? 0 : Math.max(0, sections.indexOf(begun));
  let rows: KeyRow[] = [];
  for (const section of sections.slice(from)) {
    const limit = ON_A_PAGE + 1 - rows.length;
    if (limit === 0) break;
    const others = { streaks, limit, after: section === begun ? place : undefined };
    rows = rows.concat(await read(tables, section, others));
  }
  return rows;
}

function stateOf({ prefix, webhook }: KeyRow, streaks: Streaks): State | undefined {
  if (webhook !== 'active') return webhook === 'disabled' ? 'disabled' : undefined;
  return streaks.has(prefix) ? 'failing' : 'active';
}

async function read(
  tables: Tables,
  section: State,
  {
    streaks,
    limit,
    after,
  }: { readonly streaks: Streaks; readonly limit: number; readonly after: KeyRow | undefined },
): Promise<KeyRow[]> {
  if (section === 'disabled')
    return tables.find(KEYS, { index: 'by_disabled', descending: true, after, limit });
  if (section === 'failing') {
    const prefixes = [...streaks.keys()];
    const from = prefixes.indexOf(after?.prefix ?? '') + 1;
    return tables.get(KEYS, prefixes.slice(from, from + limit));
  }
  const equals = { webhook: 'active' };
  const found = await tables.find(KEYS, { index: 'by_webhook', equals, after, limit: limit + streaks.size });
  return found.filter(({ prefix }) => !streaks.has(prefix)).slice(0, limit);
}

async function linesOf(rows: readonly KeyRow[], streaks: Streaks, tables: Tables) {
  const ids = [...new Set(rows.map(({ account_id: id }) => id))];
  const named = new Map((await tables.get(ACCOUNTS, ids, ['id', 'name'])).map((row) => [row.id, row]));
  return rows.map((row) => {
    const account = named.get(row.account_id) ?? { id: row.account_id, name: null };
    return webhookLine(keyIn(row), account, streaks.get(row.prefix));
  });
}

function filters(wanted: string | undefined, texts: Readonly<Record<string, Shown>>): VNode {
  const links = Object.entries(texts).map(([name, text], at) => {
    const state = name === 'all' ? undefined : name;
    const to = href('/webhooks', { state });
    return html`${at === 0 ? '' : ' · '}<a href=${to} aria-current=${wanted === state ? 'true' : undefined}>${show(text)}</a>`;
  });
  return html`<p>${links}</p>`;
}
