import { type AccessDirectory, identifyCaller } from '../accounts/caller.ts';
import type { Log } from '../base/log.ts';
import type { Environment } from '../domain/account-events.ts';
import { refuse, type Step } from './answers.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { clientAddress, trustedProxies } from './edge/addresses.ts';
import { checkEdge, createEdgeProof, type EdgeWindows } from './edge/checks.ts';

/** Where checks 1 and 2 are made. */
export type EdgeOptions =
  | { readonly kind: 'embedded'; readonly windows: EdgeWindows }
  | { readonly kind: 'external'; readonly tokens: readonly string[] };

/** HTTP/1.1 requires `Host`; Node's own refusal would have no body. */
export const requireHost: Step = async (ctx, next) => {
  if (ctx.req.headers.host === undefined && ctx.req.httpVersion === '1.1') {
    return refuse(ctx, { code: 'BAD_REQUEST' });
  }
  await next();
};

/** Without an up-to-date directory no access can be judged. */
export function requireAvailability(availability: () => 'ready' | 'unavailable'): Step {
  return async (ctx, next) => {
    if (availability() === 'unavailable') return refuse(ctx, { code: 'SERVICE_UNAVAILABLE' });
    await next();
  };
}

/** Behind a proxy that ends TLS: every hop that it names must have been HTTPS. */
export const requireForwardedHttps: Step = async (ctx, next) => {
  const hops = ctx.get('X-Forwarded-Proto').split(',');
  if (!hops.every((hop) => hop.trim().toLowerCase() === 'https')) {
    return refuse(ctx, { code: 'HTTPS_REQUIRED' });
  }
  await next();
};

/** Looks up the caller; refuses nobody. */
export function identify(deployment: { directory: AccessDirectory; environment: Environment }): Step {
  return async (ctx, next) => {
    ctx.state.caller = identifyCaller(ctx.get('X-API-Key'), deployment);
    await next();
  };
}

/** Checks 1 and 2. */
export function embeddedEdge(windows: EdgeWindows, proxies: readonly string[]): Step {
  const trusts = trustedProxies(proxies);
  return async (ctx, next) => {
    const { caller } = ctx.state;
    if (caller === undefined) throw new Error('the edge needs the caller identified');
    const verdict = await checkEdge(caller, clientAddress(ctx.req, trusts), windows);
    switch (verdict.kind) {
      case 'pass':
        return next();
      case 'address refused':
        return refuse(ctx, { code: 'IP_NOT_ALLOWED' });
      case 'limit reached':
        return refuse(ctx, { code: 'RATE_LIMITED', retryAfterSeconds: verdict.retryAfterSeconds });
      case 'unreadable':
        return refuse(ctx, { code: 'SERVICE_UNAVAILABLE' });
      default:
        return verdict satisfies never;
    }
  };
}

/** The check that the gateway in front has made checks 1 and 2. */
export function externalEdge(
  tokens: readonly string[],
  { log, metrics }: { log: Log; metrics: ApiMetrics },
): Step {
  const proves = createEdgeProof(tokens);
  return async (ctx, next) => {
    if (proves(ctx.get('X-Edge-Token'))) return next();
    metrics.edgeNotEnforced.inc();
    log.error(
      { request_id: ctx.state.requestId, key_prefix: ctx.state.caller?.prefix },
      'a request came without a valid X-Edge-Token: compare FUEL_EDGE_TOKEN with the gateway’s settings',
    );
    refuse(ctx, { code: 'EDGE_NOT_ENFORCED' });
  };
}
