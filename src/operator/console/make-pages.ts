import { LRUCache } from 'lru-cache';
import type { Clock } from '../../base/clock.ts';
import type { Readiness } from '../../service/ops/ops-server.ts';
import { type Asset, etagOf } from './assets.ts';
import type { ConsoleParts } from './figures/console-parts.ts';
import { type Figures, figuresOf } from './figures/figures.ts';
import { known, shared } from './figures/known.ts';
import {
  document,
  malformed,
  notFound,
  type Page,
  renderMain,
  starting,
  unavailable,
} from './html/layout.ts';
import { type FoundRoute, routeOf, SECTIONS } from './routes.ts';

/** However many people look, a page is made once between two refreshes, and less often if that takes long. */
const AGE = { ageMs: 2_000, maxAgeMs: 5_000 };
const MAX_PAGES_KEPT = 200;
const MAX_PAGE_MS = 6_000;
/** Far more than any filter needs, and far less than a header may have. */
const MAX_QUERY = 2_000;

export interface PageOptions {
  readonly environment: ConsoleParts['environment'];
  readonly clock: Clock;
  readonly readiness: () => Promise<Readiness>;
  /** `undefined` before the service has started. */
  readonly parts: () => ConsoleParts | undefined;
}

/** The `etag` identifies what the page shows, without the time of its data. */
interface MadePage extends Asset {
  readonly outcome: NonNullable<Page['outcome']>;
  readonly atMs: number;
}

/** Returns a function that makes the page of a path and a query, or returns the one that was made a moment ago. */
export function makePages({ environment, clock, readiness, parts }: PageOptions) {
  const pages = new LRUCache<string, () => Promise<MadePage>>({ max: MAX_PAGES_KEPT });
  const now = (): number => clock.now();
  let figures: Figures | undefined;

  async function read(path: string, route: FoundRoute | undefined, query: Query | undefined): Promise<Page> {
    if (route === undefined) return notFound(path, 'There is no such page.');
    if (query === undefined) return malformed('Too long', ['the query of this address is too long']);
    const started = parts();
    if (started === undefined) return starting((await readiness()).checks);
    figures ??= figuresOf(started);
    return route.make({ parts: started, figures, query, name: route.name });
  }

  async function make(
    path: string,
    route: FoundRoute | undefined,
    query: Query | undefined,
  ): Promise<MadePage> {
    const made = await known(() => read(path, route, query), now, MAX_PAGE_MS);
    const page = 'unknown' in made ? unavailable(made.unknown) : made.value;
    const main = renderMain(page);
    const atMs = now();
    return {
      outcome: page.outcome ?? 'ok',
      type: 'text/html',
      etag: etagOf(page.title + main),
      atMs,
      body: document(main, page, { path, environment, asOfMs: atMs, sections: SECTIONS }),
    };
  }

  return (path: string, querystring: string): Promise<MadePage> => {
    const route = routeOf(path);
    const query = querystring.length > MAX_QUERY ? undefined : queryOf(route, querystring);
    const key = JSON.stringify([path, query]);
    const page = pages.get(key) ?? shared(() => make(path, route, query), AGE);
    pages.set(key, page);
    return page();
  };
}

type Query = Readonly<Record<string, string>>;

/** Returns the parameters that the page knows, in a fixed order, so that others make no other page. */
function queryOf(route: FoundRoute | undefined, querystring: string): Query {
  const given = new URLSearchParams(querystring);
  return Object.fromEntries(
    (route?.parameters ?? []).flatMap((name) => {
      const value = given.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}
