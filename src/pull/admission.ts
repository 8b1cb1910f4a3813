import { hash, timingSafeEqual } from 'node:crypto';
import { type AccessDirectory, type Caller, identifyCaller } from '../accounts/caller.ts';
import type { Log } from '../base/log.ts';
import type { Environment } from '../domain/account-events.ts';
import { type Refusal, refuse, type Step } from './answers.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { type IpAddress, isAllowed } from './edge/addresses.ts';
import type { RateWindows } from './edge/rate-windows/rate-windows.ts';

/** How many wrong keys with a known prefix are counted; beyond that the oldest is forgotten. */
export const MAX_UNPROVEN_KEYS = 10_000;

export interface EdgeWindows {
  readonly keys: RateWindows;
  /** For known prefixes with a wrong secret: separate and bounded, so that a flood of them affects no real key. */
  readonly unproven: RateWindows;
}

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

/** Checks 1 and 2, made here. */
export function embeddedEdge(windows: EdgeWindows): Step {
  return async (ctx, next) => {
    const { caller, address } = ctx.state;
    if (caller === undefined) throw new Error('the edge needs the caller identified');
    const refusal = await checkEdge(caller, address, windows);
    if (refusal !== undefined) return refuse(ctx, refusal);
    await next();
  };
}

/**
 * Allow-list and rate limit of the key with the presented prefix, switched off or not. An unknown key passes; check 3
 * refuses it.
 */
export async function checkEdge(
  caller: Caller,
  address: IpAddress | undefined,
  windows: EdgeWindows,
): Promise<Refusal | undefined> {
  if (caller.known === undefined) return undefined;
  const { key, entry } = caller.known;
  // The account's events can't be read, so its allow-list can't be trusted.
  if (entry.unreadable !== null) return { code: 'SERVICE_UNAVAILABLE' };
  if (key.environment === 'production' && !isAllowed(key.allowList, address)) {
    return { code: 'IP_NOT_ALLOWED' };
  }
  const window = caller.proven ? windows.keys : windows.unproven;
  const verdict = await window.hit(caller.countingId, key.rateLimit);
  if (verdict.allowed) return undefined;
  return { code: 'RATE_LIMITED', retryAfterSeconds: verdict.retryAfterSeconds };
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

/**
 * Whether a text is one of the gateway's tokens: several may be valid, so that one can be replaced. Digests are compared,
 * always all of them, so that the time taken says nothing about a token.
 */
export function createEdgeProof(tokens: readonly string[]): (presented: string) => boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  const digests = tokens.map(digest);
  return (presented) => {
    const given = digest(presented);
    return digests.map((valid) => timingSafeEqual(valid, given)).includes(true);
  };
}
