import { DELIVERY_FIELDS } from '../answers/filters.ts';
import type { Page, PageContext } from './html/layout.ts';
import { accountPage } from './pages/account.ts';
import { accountsPage, findPage } from './pages/accounts.ts';
import { deliveriesPage, deliveryPage } from './pages/deliveries.ts';
import { keyPage } from './pages/key.ts';
import { overviewPage } from './pages/overview.ts';
import { projectionsPage } from './pages/projections.ts';
import { transactionPage } from './pages/transaction.ts';
import { webhooksPage } from './pages/webhooks.ts';

type Make = (context: PageContext) => Promise<Page>;

export interface Route {
  readonly make: Make;
  /** The parameters that the page reads. */
  readonly parameters: readonly string[];
  /** The name of the thing that the page is about; empty for a page about all of them. */
  readonly name: string;
}

/** The page about all things of a kind, with its parameters and its name in the navigation, and the page about one. */
interface Pages {
  readonly section?: string;
  readonly all?: Make;
  readonly parameters?: readonly string[];
  readonly one?: Make;
}

/** The pages by the first part of their path. */
const PAGES: Readonly<Record<string, Pages>> = {
  '': { section: 'Overview', all: overviewPage },
  webhooks: { section: 'Webhooks', all: webhooksPage, parameters: ['state', 'after'], one: keyPage },
  deliveries: {
    ...{ section: 'Deliveries', all: deliveriesPage, parameters: [...DELIVERY_FIELDS, 'after'] },
    one: deliveryPage,
  },
  transactions: { section: 'Transaction', all: transactionPage, parameters: ['id'], one: transactionPage },
  accounts: { section: 'Accounts', all: accountsPage, parameters: ['q', 'after'], one: accountPage },
  keys: { one: keyPage },
  projections: { section: 'Projections', all: projectionsPage },
  find: { all: findPage, parameters: ['q', 'after'] },
};

/** The links of the navigation. */
export const SECTIONS = Object.entries(PAGES).flatMap(([first, { section }]) =>
  section === undefined ? [] : [{ path: `/${first}`, name: section }],
);

/** Returns `undefined` if there is no page at the path. */
export function routeOf(path: string): Route | undefined {
  const [, first = '', encoded, ...rest] = path.split('/');
  const { all, parameters = [], one } = (Object.hasOwn(PAGES, first) && PAGES[first]) || {};
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
