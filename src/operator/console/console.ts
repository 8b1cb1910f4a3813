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
  /** Names, besides addresses and `localhost`, under which it may be asked for. */
  readonly hosts: readonly string[];
}

/** The operator's console: pages that show the service and change nothing. */
export function createConsole({ hosts, ...options }: ConsoleOptions) {
  let parts: ConsoleParts | undefined;
  let pages: Promise<ReturnType<typeof makePages>> | undefined;
  /** The pages are loaded when somebody looks: a start is not delayed by them. */
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
    /** From now on pages show this, instead of what the start waits for. */
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
        ctx.body = 'The console only shows: commands change.\n';
      } else if (isCrossSite(ctx.req.headers)) {
        ctx.status = OPS_STATUS.refused;
        ctx.body = 'Other sites can not read the console.\n';
      } else {
        await answer(ctx);
      }
    },
  };
}

/** Nothing, where whoever asks has it. */
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
 * Whether the console may be asked for under this name. A page of another site, whose name is made to lead to this
 * machine, is then of that name: it can't read what only its own name, an address or `localhost` may ask for.
 */
function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const [, bracketed, plain = ''] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase().replace(/\.$/, '');
  return name !== '' && (name === 'localhost' || isIP(name) === 4 || hosts.includes(name));
}

/**
 * Whether a browser asks for another site's page, as it says itself. To follow a link from there is no read by that
 * site; to show the answer in a frame would be.
 */
function isCrossSite(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}
