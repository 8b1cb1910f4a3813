import { isIP } from 'node:net';
import type Koa from 'koa';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { OPS_STATUS } from '../../service/ops/ops-server.ts';
import { type Asset, assetAt } from './assets.ts';
import type { ConsoleParts } from './figures/console-parts.ts';
import type { makePages, PageOptions } from './make-pages.ts';

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

export interface ConsoleOptions extends Omit<PageOptions, 'parts'> {
  /** The names, besides addresses and `localhost`, under which the console is served. */
  readonly hosts: readonly string[];
}

/** Creates the operator's console: pages that show the service and change nothing. */
export function createConsole({ hosts, ...options }: ConsoleOptions) {
  let parts: ConsoleParts | undefined;
  let pages: Promise<ReturnType<typeof makePages>> | undefined;
  /** Loads the pages when somebody looks at one, so that they do not delay a start. */
  const load = async () => (await import('./make-pages.ts')).makePages({ ...options, parts: () => parts });
  const answer = async (ctx: Koa.Context): Promise<void> => {
    const asset = assetAt(ctx.path);
    if (asset !== undefined) {
      ctx.set('Cache-Control', 'no-cache');
      return send(ctx, OPS_STATUS.ok, asset);
    }
    pages ??= load();
    const page = await (await pages)(ctx.path, ctx.querystring);
    ctx.set('X-As-Of', formatDateTime(page.atMs));
    send(ctx, OPS_STATUS[page.outcome], page);
  };
  return {
    /** Lets pages show this process. Before, they show what the start waits for. */
    serve(given: ConsoleParts): void {
      parts = given;
    },

    /** Answers every request that it gets. */
    async handle(ctx: Koa.Context): Promise<void> {
      ctx.set(HEADERS);
      if (!isKnownHost(ctx.req.headers.host, hosts)) {
        ctx.status = OPS_STATUS.otherHost;
        ctx.body =
          'The console is not served under this name: use an address or localhost, or add it to FUEL_OPS_HOSTS.\n';
      } else if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
        ctx.status = OPS_STATUS.methodNotAllowed;
        ctx.set('Allow', 'GET, HEAD');
        ctx.body = 'The console is read-only: use a command to change something.\n';
      } else if (isCrossSite(ctx.req.headers)) {
        ctx.status = OPS_STATUS.refused;
        ctx.body = 'Other sites cannot read the console.\n';
      } else {
        await answer(ctx);
      }
    },
  };
}

/** Answers 304 without a body if the browser has this version already. */
function send(ctx: Koa.Context, status: number, { etag, type, body }: Asset): void {
  ctx.set('ETag', etag);
  ctx.type = type;
  if (ctx.get('If-None-Match') === etag) {
    ctx.status = OPS_STATUS.unchanged;
  } else {
    ctx.status = status;
    ctx.body = body;
  }
}

/**
 * True if the console is served under this name. Another site can make its own name lead to this machine (DNS rebinding).
 * Its pages can't read the console, because they ask for it under that name.
 */
function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const [, bracketed, plain = ''] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase().replace(/\.$/, '');
  return name !== '' && (name === 'localhost' || isIP(name) === 4 || hosts.includes(name));
}

/**
 * True if a browser says that it asks on behalf of another site. Following a link from that site is allowed, because the
 * site can't read the page then; showing the page in a frame is not.
 */
function isCrossSite(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}
