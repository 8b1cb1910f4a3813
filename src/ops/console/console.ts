import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../clock.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { OPS_STATUS, type Readiness } from '../ops-server.ts';
import { assetAt, etagOf } from './assets.ts';
import { known } from './figures/known.ts';
import type { ConsoleParts } from './figures/parts.ts';
import { Snapshots } from './figures/snapshot.ts';
import { isCrossSite, isKnownHost } from './host-check.ts';
import { document, type Page, renderMain } from './html/layout.ts';
import { malformed, notFound, starting, unavailable } from './html/problems.ts';
import { routeOf } from './routes.ts';

/** As often as a page is refreshed: however many look at one, it is made once. */
const PAGE_MAX_AGE_MS = 2_000;
const MAX_PAGES_KEPT = 200;
const MAX_PAGE_MS = 6_000;
/** Far more than any filter, far less than a header may have. */
const MAX_QUERY = 2_000;

const HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types fuel-console',
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const;

const STATUS_OF = {
  ok: OPS_STATUS.ok,
  'not found': OPS_STATUS.notFound,
  malformed: OPS_STATUS.malformed,
  unavailable: OPS_STATUS.unavailable,
} as const satisfies Record<NonNullable<Page['outcome']>, number>;

export interface ConsoleOptions {
  /** Names, besides addresses and `localhost`, under which it may be asked for. */
  readonly hosts: readonly string[];
  readonly environment: ConsoleParts['environment'];
  readonly clock: Clock;
  readonly readiness: () => Readiness | Promise<Readiness>;
}

interface MadePage {
  readonly page: Page;
  readonly main: string;
  readonly etag: string;
  readonly atMs: number;
}

/** The operator's console: pages that show the service and change nothing. */
export class Console {
  readonly #options: ConsoleOptions;
  readonly #pages = new LRUCache<string, Promise<MadePage>>({ max: MAX_PAGES_KEPT, ttl: PAGE_MAX_AGE_MS });
  #served: { readonly parts: ConsoleParts; readonly snapshots: Snapshots } | undefined;

  constructor(options: ConsoleOptions) {
    this.#options = options;
  }

  /** From now on pages show this, instead of what the start waits for. */
  serve(parts: ConsoleParts): void {
    this.#served = { parts, snapshots: new Snapshots(parts) };
    this.#pages.clear();
  }

  /** Answers every request that it gets. */
  readonly handle: Koa.Middleware = async (ctx) => {
    ctx.set(HEADERS);
    if (!isKnownHost(ctx.req.headers.host, this.#options.hosts)) {
      ctx.status = OPS_STATUS.otherHost;
      ctx.body =
        'The console is not served under this name: use an address or localhost, or add it to FUEL_OPS_HOSTS.\n';
    } else if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.status = OPS_STATUS.methodNotAllowed;
      ctx.set('Allow', 'GET, HEAD');
      ctx.body = 'The console only shows: commands change.\n';
    } else if (isCrossSite(ctx.req.headers)) {
      ctx.status = OPS_STATUS.refused;
      ctx.body = 'Other sites can not read the console.\n';
    } else {
      await this.#answer(ctx);
    }
  };

  async #answer(ctx: Koa.Context): Promise<void> {
    const asset = assetAt(ctx.path);
    if (asset !== undefined) {
      ctx.set({ ETag: asset.etag, 'Cache-Control': 'no-cache' });
      ctx.type = asset.type;
      if (isUnchanged(ctx, asset.etag)) return;
      ctx.body = asset.body;
      return;
    }
    const { page, main, etag, atMs } = await this.#page(ctx.path, ctx.querystring);
    ctx.set({ ETag: etag, 'X-As-Of': formatDateTime(atMs) });
    ctx.type = 'text/html';
    if (isUnchanged(ctx, etag)) return;
    ctx.status = STATUS_OF[page.outcome ?? 'ok'];
    const { environment } = this.#options;
    ctx.body = document(page, { main, path: ctx.path, environment, asOfMs: atMs });
  }

  #page(path: string, querystring: string): Promise<MadePage> {
    const key = `${path}?${querystring}`;
    const kept = this.#pages.get(key);
    if (kept !== undefined) return kept;
    const made = this.#make(path, querystring);
    this.#pages.set(key, made);
    made.catch(() => this.#pages.delete(key));
    return made;
  }

  async #make(path: string, querystring: string): Promise<MadePage> {
    const now = (): number => this.#options.clock.now();
    const made = await known(() => this.#read(path, querystring), now, MAX_PAGE_MS);
    const page = 'unknown' in made ? unavailable(made.unknown) : made.value;
    const main = renderMain(page);
    return { page, main, etag: etagOf(page.title + main), atMs: now() };
  }

  async #read(path: string, querystring: string): Promise<Page> {
    const route = routeOf(path);
    if (route === undefined) return notFound(path, 'There is no such page.');
    if (querystring.length > MAX_QUERY)
      return malformed('Too long', ['the query of this address is too long']);
    if (this.#served === undefined) return starting((await this.#options.readiness()).checks);
    const query = Object.fromEntries(new URLSearchParams(querystring));
    return route.make({ ...this.#served, query, name: route.name });
  }
}

function isUnchanged(ctx: Koa.Context, etag: string): boolean {
  if (ctx.get('If-None-Match') !== etag) return false;
  ctx.status = OPS_STATUS.unchanged;
  return true;
}
