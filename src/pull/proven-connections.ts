import type { Socket } from 'node:net';
import type { Context, RefusalCode, Step } from './answers.ts';
import { trustedProxies } from './edge/addresses.ts';

/** How long a connection may stay idle while no key has been accepted on it. */
const UNPROVEN_IDLE_MS = 5_000;
/** Node waits this much longer than it announces, so that no request is sent just when the connection closes. */
const MARGIN_MS = 1_000;

/** Knows on which connections a key has been accepted. */
export interface ProvenConnections {
  prove(socket: Socket): void;
  isProven(socket: Socket): boolean;
}

/**
 * Keeps connections open for callers with a key. A connection on which no key has been accepted yet is closed soon, or
 * at once after an unknown path; a 401 closes any connection. Those of trusted proxies are left alone: several callers
 * share them, and a proxy that finds one closed may fail its next request.
 */
export function keepProvenConnections({
  proxies,
  connections,
  unprovenIdleMs = UNPROVEN_IDLE_MS,
}: {
  readonly proxies: readonly string[];
  readonly connections: ProvenConnections;
  readonly unprovenIdleMs?: number;
}): Step {
  const trusts = trustedProxies(proxies);
  return async (ctx, next) => {
    const { socket } = ctx.req;
    ctx.state.keyAccepted = () => connections.prove(socket);
    await next();
    if (trusts(socket.remoteAddress ?? '') || ctx.res.hasHeader('Connection')) return;
    if (isLast(ctx.state.code, connections.isProven(socket))) ctx.set('Connection', 'close');
    else if (!connections.isProven(socket) && ctx.res.shouldKeepAlive) endSoon(ctx, unprovenIdleMs);
  };
}

/** True if the connection ends with this answer: the key is invalid, or the path is unknown and no key was accepted. */
function isLast(code: RefusalCode | undefined, isProven: boolean): boolean {
  return code === 'INVALID_API_KEY' || (code === 'NOT_FOUND' && !isProven);
}

function endSoon(ctx: Context, idleMs: number): void {
  ctx.set({ Connection: 'keep-alive', 'Keep-Alive': `timeout=${Math.floor(idleMs / 1000)}` });
  // Node sets its own timeout when the answer is complete. This listener runs after that.
  ctx.res.once('finish', () => ctx.req.socket.setTimeout(idleMs + Math.min(idleMs, MARGIN_MS)));
}
