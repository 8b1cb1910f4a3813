import { DELIVERY_FIELDS } from '../answers/filters.ts';
import type { Page, PageContext } from './html/layout.ts';
import { accountPage } from './pages/account.ts';
import { accountsPage } from './pages/accounts.ts';
import { deliveriesPage } from './pages/deliveries.ts';
import { deliveryPage } from './pages/delivery.ts';
import { findPage } from './pages/find.ts';
import { keyPage } from './pages/key.ts';
import { overviewPage } from './pages/overview.ts';
import { projectionsPage } from './pages/projections.ts';
import { transactionPage } from './pages/transaction.ts';
import { webhookPage } from './pages/webhook.ts';
import { webhooksPage } from './pages/webhooks.ts';

type Make = (context: PageContext) => Promise<Page>;

export interface Route {
  readonly make: Make;
  /** What of a query the page reads. */
  readonly parameters: readonly string[];
  /** What the page is about; empty for a page without a name. */
  readonly name: string;
}

const PAGES: Readonly<Record<string, Omit<Route, 'name'>>> = {
  '': { make: overviewPage, parameters: [] },
  webhooks: { make: webhooksPage, parameters: ['state', 'after'] },
  deliveries: { make: deliveriesPage, parameters: [...DELIVERY_FIELDS, 'after'] },
  transactions: { make: transactionPage, parameters: ['id'] },
  accounts: { make: accountsPage, parameters: ['q', 'after'] },
  projections: { make: projectionsPage, parameters: [] },
  find: { make: findPage, parameters: ['q', 'after'] },
};
const PAGES_OF_ONE: Readonly<Record<string, Make>> = {
  webhooks: webhookPage,
  deliveries: deliveryPage,
  transactions: transactionPage,
  accounts: accountPage,
  keys: keyPage,
};

/** `undefined` where there is no page. */
export function routeOf(path: string): Route | undefined {
  const [, first = '', encoded, ...rest] = path.split('/');
  if (rest.length > 0 || encoded === '') return undefined;
  if (encoded === undefined) {
    const page = Object.hasOwn(PAGES, first) ? PAGES[first] : undefined;
    return page && { ...page, name: '' };
  }
  const make = Object.hasOwn(PAGES_OF_ONE, first) ? PAGES_OF_ONE[first] : undefined;
  const name = decoded(encoded);
  return make === undefined || name === undefined ? undefined : { make, name, parameters: [] };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
