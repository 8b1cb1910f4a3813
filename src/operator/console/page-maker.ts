import { LRUCache } from 'lru-cache';
import type { Clock } from '../../base/clock.ts';
import type { Readiness } from '../../service/ops/ops-server.ts';
import { etagOf } from './assets.ts';
import { Fresh, known } from './figures/known.ts';
import type { ConsoleParts } from './figures/parts.ts';
import { Snapshots } from './figures/snapshot.ts';
import {
  document,
  malformed,
  notFound,
  type Page,
  renderMain,
  starting,
  unavailable,
} from './html/layout.ts';
import { PageTurns } from './page-turns.ts';
import { type Route, routeOf } from './routes.ts';

/**
 * A page is made once in the time in which it is refreshed, however many look at it; one that takes long less often, so
 * that it takes two thousandths of the time.
 */
const FRESH = { maxAgeMs: 2_000, restFactor: 500, maxRestMs: 5_000, now: () => performance.now() };
const MAX_PAGES_KEPT = 200;
const MAX_PAGE_MS = 6_000;
/** Far more than any filter, far less than a header may have. */
const MAX_QUERY = 2_000;

export interface PageMakerOptions {
  readonly environment: ConsoleParts['environment'];
  readonly clock: Clock;
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** `undefined` before the service has started. */
  readonly parts: () => ConsoleParts | undefined;
}

export interface MadePage {
  readonly outcome: NonNullable<Page['outcome']>;
  /** Identifies what it shows, without the time as of which it does. */
  readonly etag: string;
  readonly atMs: number;
  readonly document: () => string;
}

/** Makes each page once in two seconds or somewhat more, whoever asks. */
export class PageMaker {
  readonly #options: PageMakerOptions;
  readonly #pages = new LRUCache<string, Fresh<MadePage>>({ max: MAX_PAGES_KEPT });
  readonly #turns = new PageTurns();
  #snapshots: Snapshots | undefined;

  constructor(options: PageMakerOptions) {
    this.#options = options;
  }

  page(path: string, querystring: string): Promise<MadePage> {
    const route = routeOf(path);
    const query = querystring.length > MAX_QUERY ? undefined : queryOf(route, querystring);
    const key = JSON.stringify([path, query]);
    const page = this.#pages.get(key) ?? new Fresh(() => this.#make(path, route, query), FRESH);
    this.#pages.set(key, page);
    return page.get();
  }

  async #make(path: string, route: Route | undefined, query: Query | undefined): Promise<MadePage> {
    const { clock, environment } = this.#options;
    const now = (): number => clock.now();
    const make = async () => {
      const read = await known(() => this.#read(path, route, query), now, { maxWaitMs: MAX_PAGE_MS });
      const page = 'unknown' in read ? unavailable(read.unknown) : read.value;
      return { page, main: renderMain(page) };
    };
    // The pages that show nothing but the one snapshot of all wait for no other page.
    const isCheap = route === undefined || (route.parameters.length === 0 && route.name === '');
    const { page, main } = (await (isCheap ? make() : this.#turns.take(make))) ?? tooMany();
    const atMs = now();
    return {
      outcome: page.outcome ?? 'ok',
      etag: etagOf(page.title + main),
      atMs,
      document: () => document(page, { main, path, environment, asOfMs: atMs }),
    };
  }

  async #read(path: string, route: Route | undefined, query: Query | undefined): Promise<Page> {
    if (route === undefined) return notFound(path, 'There is no such page.');
    if (query === undefined) return malformed('Too long', ['the query of this address is too long']);
    const parts = this.#options.parts();
    if (parts === undefined) return starting((await this.#options.readiness()).checks);
    this.#snapshots ??= new Snapshots(parts);
    return route.make({ parts, snapshots: this.#snapshots, query, name: route.name });
  }
}

type Query = Readonly<Record<string, string>>;

/** What the page knows of the query, in one order: whatever else is in it makes no other page. */
function queryOf(route: Route | undefined, querystring: string): Query {
  const given = new URLSearchParams(querystring);
  const entries = (route?.parameters ?? []).map((name) => [name, given.get(name)] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}

function tooMany(): { readonly page: Page; readonly main: string } {
  const page = unavailable('More pages are asked for than are made at once.');
  return { page, main: renderMain(page) };
}
