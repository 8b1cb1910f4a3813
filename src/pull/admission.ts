import { hash, timingSafeEqual } from 'node:crypto';
import { type AccessRows, type Caller, identifyCaller, presentedCaller } from '../accounts/caller.ts';
import type { IpAddress } from '../base/config/ip-address.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { Environment } from '../domain/account-events.ts';
import { type Refusal, type RefusalCode, refuse, type Step } from './answers.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { isAllowed } from './edge/addresses.ts';
import type { RateWindows } from './edge/rate-windows/rate-windows.ts';
import { tracedStep } from './request-spans.ts';

/** How many wrong keys with a known prefix are counted. Beyond that the oldest is forgotten. */
export const MAX_UNPROVEN_KEYS = 10_000;

/**
 * How many requests of one key, or of one address without a valid key, are answered at a time. Their answers may all be
 * kept until the client reads them.
 */
const MAX_UNDER_WAY = 8;
/** How long a refusal that no rate window counts keeps its turn, so that 80 of them a second cost a few percent of a core. */
const REFUSAL_KEEPS_MS = 100;

export interface EdgeWindows {
  readonly keys: RateWindows;
  /**
   * Windows for known prefixes with a wrong secret, separate and bounded so that a flood of them affects no real key.
   */
  readonly unproven: RateWindows;
}

/** The place in which checks 1 and 2 are made: here or in a gateway. */
export type EdgeOptions =
  | { readonly kind: 'embedded'; readonly windows: EdgeWindows }
  | { readonly kind: 'external'; readonly tokens: readonly string[] };

/** Requires one `Host`, as HTTP/1.1 does. Node's own refusal has no body, and it accepts the first of several. */
export const requireHost: Step = async (ctx, next) => {
  const { rawHeaders, httpVersion } = ctx.req;
  const isHost = (text: string, index: number) => index % 2 === 0 && /^host$/i.test(text);
  const hosts = rawHeaders.filter(isHost).length;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refuse(ctx, { code: 'BAD_REQUEST' });
  await next();
};

/** Refuses requests while the rows of accounts are not up to date, since no access can be judged then. */
export function requireAvailability(availability: () => 'ready' | 'unavailable'): Step {
  return async (ctx, next) => {
    if (availability() === 'unavailable') return refuse(ctx, { code: 'SERVICE_UNAVAILABLE' });
    await next();
  };
}

/** Behind a proxy that ends TLS, requires that every hop it names used HTTPS. */
export const requireForwardedHttps: Step = async (ctx, next) => {
  const hops = ctx.get('X-Forwarded-Proto').split(',');
  if (!hops.every((hop) => hop.trim().toLowerCase() === 'https')) {
    return refuse(ctx, { code: 'HTTPS_REQUIRED' });
  }
  await next();
};

/** Notes whom the presented key names, so that log lines of requests that are refused early name it too. */
export const present: Step = async (ctx, next) => {
  ctx.state.caller = presentedCaller(ctx.get('X-API-Key'));
  await next();
};

/** Looks up the caller without refusing anybody. */
export function identify(deployment: { accounts: AccessRows; environment: Environment }): Step {
  return async (ctx, next) => {
    const identified = () => identifyCaller(ctx.get('X-API-Key'), deployment);
    ctx.state.caller = await tracedStep(ctx, 'key', identified);
    await next();
  };
}

/** Makes checks 1 and 2 in this process. */
export function embeddedEdge(windows: EdgeWindows): Step {
  return async (ctx, next) => {
    const { caller, address } = ctx.state;
    if (caller === undefined) throw new Error('the edge needs the caller identified');
    const refusal = await tracedStep(ctx, 'rate window', () => checkEdge(caller, address, windows));
    if (refusal !== undefined) return refuse(ctx, refusal);
    await next();
  };
}

/**
 * Checks the allow-list and the rate limit of the key with the presented prefix, active or not. An unknown key passes,
 * and is refused by check 3.
 */
export async function checkEdge(
  caller: Caller,
  address: IpAddress | undefined,
  windows: EdgeWindows,
): Promise<Refusal | undefined> {
  if (caller.known === undefined) return undefined;
  const { key, unreadable } = caller.known;
  // The account's events can't be read, so its allow-list can't be trusted.
  if (unreadable !== null) return { code: 'SERVICE_UNAVAILABLE' };
  if (key.environment === 'production' && !isAllowed(key.allowList, address)) {
    return { code: 'IP_NOT_ALLOWED' };
  }
  const window = caller.proven ? windows.keys : windows.unproven;
  const verdict = await window.hit(caller.countingId, key.rateLimit);
  if (verdict.allowed) return undefined;
  return { code: 'RATE_LIMITED', retryAfterSeconds: verdict.retryAfterSeconds };
}

/** Checks that the gateway in front has made checks 1 and 2. */
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
 * Makes a function that says if a text is one of the gateway's tokens. Several may be valid, so that one can be
 * replaced. It compares digests, and always all of them, so that the time it takes reveals nothing about a token.
 */
export function createEdgeProof(tokens: readonly string[]): (presented: string) => boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  const digests = tokens.map(digest);
  return (presented) => {
    const given = digest(presented);
    return digests.map((valid) => timingSafeEqual(valid, given)).includes(true);
  };
}

/** The codes of refusals that a valid key gets without being counted. */
const UNCOUNTED: ReadonlySet<RefusalCode | undefined> = new Set(['IP_NOT_ALLOWED', 'RATE_LIMITED']);

interface Turns {
  underWay: number;
  /** Each function lets a waiting request begin; the oldest comes first. */
  readonly waiting: Set<() => void>;
}

/**
 * Answers a few requests of one key at a time, until their answers have been handed to the connection completely; further
 * ones wait. So a key takes a bounded share of the stores, of the memory and, if it goes on after it was refused, of the
 * thread, however many connections it has. Requests without a valid secret take the turns of their address.
 */
export function takeTurns(): Step {
  const turns = new Map<string, Turns>();
  return async (ctx, next) => {
    const { caller, address } = ctx.state;
    const isProven = caller?.proven === true;
    const name = (isProven ? caller.prefix : address?.toString()) ?? '';
    const own = turns.get(name) ?? { underWay: 0, waiting: new Set() };
    turns.set(name, own);
    const { promise: turn, resolve: begin } = Promise.withResolvers<void>();
    if (own.underWay < MAX_UNDER_WAY) {
      own.underWay += 1;
      begin();
    } else own.waiting.add(begin);
    const giveBack = (): void => {
      const [following] = own.waiting;
      if (following !== undefined) {
        own.waiting.delete(following);
        following();
      } else if (--own.underWay === 0) turns.delete(name);
    };
    // `close` follows the end of the answer and the end of the connection.
    ctx.res.once('close', () => {
      if (own.waiting.delete(begin)) return begin();
      const isCounted = isProven && !UNCOUNTED.has(ctx.state.code);
      if (isCounted) giveBack();
      else world.setTimeout(giveBack, REFUSAL_KEEPS_MS).unref();
    });
    await turn;
    if (ctx.res.closed) return refuse(ctx, { code: 'REQUEST_TIMEOUT' }); // nobody is left to read it
    await next();
  };
}
