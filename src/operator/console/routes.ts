import { DELIVERY_FIELDS } from '../answers/filters.ts';
import type { Page, PageContext } from './html/layout.ts';
import { accountPage, keyPage } from './pages/account.ts';
import { accountsPage, findPage } from './pages/accounts.ts';
import { deliveriesPage, deliveryPage } from './pages/deliveries.ts';
import { overviewPage } from './pages/overview.ts';
import { projectionsPage } from './pages/projections.ts';
import { transactionPage } from './pages/transaction.ts';
import { webhookPage, webhooksPage } from './pages/webhooks.ts';

type Make = (context: PageContext) => Promise<Page>;

export interface Route {
  readonly make: Make;
  /** What of a query the page reads. */
  readonly parameters: readonly string[];
  /** What the page is about; empty for a page without a name. */
  readonly name: string;
}

/** The page of all, with its parameters, and that of one, by the first part of the path. */
const PAGES = new Map<string, { all?: Make; parameters?: readonly string[]; one?: Make }>([
  ['', { all: overviewPage }],
  ['webhooks', { all: webhooksPage, parameters: ['state', 'after'], one: webhookPage }],
  ['deliveries', { all: deliveriesPage, parameters: [...DELIVERY_FIELDS, 'after'], one: deliveryPage }],
  [
    'transactions',
    { all: transactionPage, parameters: ['id', 'account', 'day', 'after'], one: transactionPage },
  ],
  ['accounts', { all: accountsPage, parameters: ['q', 'after'], one: accountPage }],
  ['keys', { one: keyPage }],
  ['projections', { all: projectionsPage }],
  ['find', { all: findPage, parameters: ['q', 'after'] }],
]);

/** `undefined` where there is no page. */
export function routeOf(path: string): Route | undefined {
  const [, first = '', encoded, ...rest] = path.split('/');
  const { all, parameters = [], one } = PAGES.get(first) ?? {};
  if (rest.length > 0 || encoded === '') return undefined;
  if (encoded === undefined) return all && { make: all, parameters, name: '' };
  const name = decoded(encoded);
  return name === undefined ? undefined : one && { make: one, parameters: [], name };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
