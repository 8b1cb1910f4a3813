import type { Page } from './html/layout.ts';
import { accountPage } from './pages/account.ts';
import { accountsPage } from './pages/accounts.ts';
import { deliveriesPage } from './pages/deliveries.ts';
import { deliveryPage } from './pages/delivery.ts';
import { findPage } from './pages/find.ts';
import { keyPage } from './pages/key.ts';
import { overviewPage } from './pages/overview.ts';
import type { PageContext } from './pages/page-context.ts';
import { projectionsPage } from './pages/projections.ts';
import { transactionPage } from './pages/transaction.ts';
import { webhookPage } from './pages/webhook.ts';
import { webhooksPage } from './pages/webhooks.ts';

export interface Route {
  readonly make: (context: PageContext) => Promise<Page>;
  /** What the page is about; empty for a page without a name. */
  readonly name: string;
}

const PAGES: Readonly<Record<string, Route['make']>> = {
  '': overviewPage,
  webhooks: webhooksPage,
  deliveries: deliveriesPage,
  transactions: transactionPage,
  accounts: accountsPage,
  projections: projectionsPage,
  find: findPage,
};
const PAGES_OF_ONE: Readonly<Record<string, Route['make']>> = {
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
  const pages = encoded === undefined ? PAGES : PAGES_OF_ONE;
  const make = Object.hasOwn(pages, first) ? pages[first] : undefined;
  const name = encoded === undefined ? '' : decoded(encoded);
  return make === undefined || name === undefined ? undefined : { make, name };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
