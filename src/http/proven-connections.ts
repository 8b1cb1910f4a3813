import type { Socket } from 'node:net';
import { trustedProxies } from '../edge/client-address.ts';
import type { RefusalCode } from './answers.ts';
import type { Context, Step } from './context.ts';

/** How long a connection may stay idle on which no key has been accepted yet. */
export const UNPROVEN_IDLE_MS = 5_000;
/** Node gives clients this much longer than they are told, so that no request crosses the end. */
const MARGIN_MS = 1_000;

/**
 * Keeps connections open for those who have a key: one on which none was accepted yet is closed soon, and after an
 * unknown path at once; a 401 closes any. The connections of trusted proxies are not one caller's, and a proxy that finds
 * one closed may fail its next request; they are left alone.
 */
export function keepProvenConnections({
  proxies,
  unprovenIdleMs = UNPROVEN_IDLE_MS,
}: {
  readonly proxies: readonly string[];
  readonly unprovenIdleMs?: number;
}): Step {
  const trusts = trustedProxies(proxies);
  const proven = new WeakSet<Socket>();
  return async (ctx, next) => {
    await next();
    const { socket } = ctx.req;
    if (ctx.state.keyAccepted) proven.add(socket);
    if (trusts(socket.remoteAddress ?? '') || ctx.res.hasHeader('Connection')) return;
    if (isLast(ctx.state.code, proven.has(socket))) ctx.set('Connection', 'close');
    else if (!proven.has(socket) && ctx.res.shouldKeepAlive) endSoon(ctx, unprovenIdleMs);
  };
}

/** Whether there is nothing more to ask for: the caller knows no key, or no path either. */
function isLast(code: RefusalCode | undefined, isProven: boolean): boolean {
  return code === 'INVALID_API_KEY' || (code === 'NOT_FOUND' && !isProven);
}

function endSoon(ctx: Context, idleMs: number): void {
  ctx.set({ Connection: 'keep-alive', 'Keep-Alive': `timeout=${Math.floor(idleMs / 1000)}` });
  // Node sets the time of its own when the answer is complete; this listener comes after that.
  ctx.res.once('finish', () => ctx.req.socket.setTimeout(idleMs + Math.min(idleMs, MARGIN_MS)));
}
