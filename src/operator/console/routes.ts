import type { Page, PageContext } from './html/layout.ts';
import { accountPage } from './pages/account.ts';
import { accountsPage, findPage } from './pages/accounts.ts';
import { DELIVERY_FIELDS, deliveriesPage, deliveryPage } from './pages/deliveries.ts';
import { keyPage } from './pages/key.ts';
import { overviewPage } from './pages/overview.ts';
import { projectionsPage } from './pages/projections.ts';
import { transactionPage } from './pages/transaction.ts';
import { webhooksPage } from './pages/webhooks.ts';

interface Route {
  /** A path that ends with `:name` is about one thing. */
  readonly path: string;
  readonly make: (context: PageContext) => Promise<Page>;
  /** The parameters that the page reads. */
  readonly parameters?: readonly string[];
  /** The name of the page in the navigation. */
  readonly section?: string;
}

const ROUTES: readonly Route[] = [
  { path: '/', make: overviewPage, section: 'Overview' },
  { path: '/webhooks', make: webhooksPage, parameters: ['state', 'after'], section: 'Webhooks' },
  {
    path: '/deliveries',
    make: deliveriesPage,
    parameters: [...DELIVERY_FIELDS, 'after'],
    section: 'Deliveries',
  },
  { path: '/deliveries/:name', make: deliveryPage },
  { path: '/transactions', make: transactionPage, parameters: ['id'], section: 'Transaction' },
  { path: '/transactions/:name', make: transactionPage },
  { path: '/accounts', make: accountsPage, parameters: ['q', 'after'], section: 'Accounts' },
  { path: '/accounts/:name', make: accountPage },
  { path: '/keys/:name', make: keyPage },
  { path: '/projections', make: projectionsPage, section: 'Projections' },
  { path: '/find', make: findPage, parameters: ['q', 'after'] },
];

/** The links of the navigation. */
export const SECTIONS = ROUTES.flatMap(({ path, section }) =>
  section === undefined ? [] : [{ path, name: section }],
);

export type FoundRoute = Route & {
  /** The name of the thing that the page is about; empty for a page about all of them. */
  readonly name: string;
};

/** Returns `undefined` if there is no page at the path. */
export function routeOf(path: string): FoundRoute | undefined {
  const [, folder, encoded = ''] = /^(\/\w+)\/([^/]+)$/.exec(path) ?? [];
  const route = ROUTES.find((each) => each.path === (folder === undefined ? path : `${folder}/:name`));
  try {
    return route && { ...route, name: decodeURIComponent(encoded) };
  } catch {
    return undefined; // the name is not UTF-8
  }
}
