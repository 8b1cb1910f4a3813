import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { listen } from '../../listen.ts';
import type { Log } from '../../log.ts';
import { SummedLine } from '../../summed-line.ts';
import { type RefusalCode, rawAnswer, refusalAnswer } from '../answers.ts';
import { guardConnections, type TurnedAway } from './connection-gate.ts';
import { Connections } from './connections.ts';

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

export interface ServerOptions {
  readonly handler: RequestListener;
  readonly tls:
    | {
        readonly kind: 'served';
        readonly pem: PemPair;
        /** As CIDRs. */
        readonly proxies?: readonly string[];
      }
    /** Only these proxies, as CIDRs, may connect; they end TLS. */
    | { readonly kind: 'terminated'; readonly proxies: readonly string[] };
  readonly log: Log;
  /** Hears of each connection that is turned away. */
  readonly onTurnedAway?: (reason: TurnedAway) => void;
  /** Instead of the service's own limits, for tests that wait for them. */
  readonly limits?: Partial<typeof LIMITS>;
}

export interface PublicServer {
  /** Resolves with the real address; port 0 picks a free one. */
  listen(address: { readonly host: string; readonly port: number }): Promise<AddressInfo>;
  /** New connections get this certificate; those that are open keep theirs. */
  reload(pem: PemPair): void;
  /**
   * Accepts nothing more, lets the requests under way be answered, closes their connections after it, and
   * closes all others at once. What is still open after `graceMs` is cut off.
   */
  stop(graceMs: number): Promise<void>;
}

const LIMITS = {
  /** Request line and headers together: a list of 1,000 corporate ids fits, the longest and encoded. */
  maxHeaderSize: 24 * 1024,
  /** A client that drips its headers holds a connection no longer than this. */
  headersTimeout: 10_000,
  /** The whole request; it has no body to speak of. */
  requestTimeout: 15_000,
  /** How late the two timeouts above may be noticed; Node's 30 s would make them pointless. */
  connectionsCheckingInterval: 1_000,
  /** Longer than the 60 s after which common load balancers drop idle connections: they must be first. */
  keepAliveTimeout: 65_000,
  /** None: requests pipelined past a limit would get Node's own empty 503. The rate limit bounds a key. */
  maxRequestsPerSocket: 0,
  /** A TLS connection holds some 50 KB: 100 MB at most. */
  maxConnections: 2_000,
  /** Of one IPv4 address or IPv6 /64: more than a customer's clients have, and nobody can shut out the others. */
  maxPerPeer: 64,
  /** Of one trusted proxy, which brings many customers. */
  maxPerProxy: 1_000,
  /** A connection that does not become TLS in this time is closed. */
  handshakeTimeout: 10_000,
};

const MIN_TLS_VERSION = 'TLSv1.2';
/** How long a refused connection stays open for its client to read why. */
const LINGER_MS = 1_000;

/** The public server: HTTPS, or HTTP to trusted proxies alone where they end TLS. */
export function createServer(options: ServerOptions): PublicServer {
  const limits = { ...LIMITS, ...options.limits };
  const { server, reload } =
    options.tls.kind === 'served' ? tlsServer(options.tls.pem, limits) : plainServer(limits);
  server.maxConnections = limits.maxConnections;
  server.maxRequestsPerSocket = limits.maxRequestsPerSocket;
  const connections = new Connections(server);
  const turnedAway = guard(server, options, limits); // after all others that hear of connections
  // `close` would call it, and Node takes an answer for done that a slow client has not read to its end yet.
  server.closeIdleConnections = () => undefined;
  server.on('request', options.handler);
  // Any other expectation than 100-continue is ignored; Node would answer it with an empty 417.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    refuseUnparsed(error, socket, connections, options.log);
  });
  return {
    reload,
    listen: (address) => listen(server, address),
    async stop(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.drain();
      const cutOff = setTimeout(() => connections.destroyAll(), graceMs);
      await closed;
      clearTimeout(cutOff);
      turnedAway.end();
    },
  };
}

interface Listener {
  readonly server: Server;
  readonly reload: (pem: PemPair) => void;
}

function tlsServer(pem: PemPair, limits: typeof LIMITS): Listener {
  const server = createHttpsServer({
    ...limits,
    ...pem,
    minVersion: MIN_TLS_VERSION,
    requireHostHeader: false,
  });
  return { server, reload: (next) => server.setSecureContext({ ...next, minVersion: MIN_TLS_VERSION }) };
}

function plainServer(limits: typeof LIMITS): Listener {
  return { server: createHttpServer({ ...limits, requireHostHeader: false }), reload: () => undefined };
}

function guard(server: Server, { tls, log, onTurnedAway }: ServerOptions, limits: typeof LIMITS): SummedLine {
  const line = new SummedLine((counts, peer) => {
    log.warn({ turned_away: counts, last_peer: peer }, 'connections were turned away');
  });
  guardConnections(server, {
    proxies: tls.proxies ?? [],
    onlyProxies: tls.kind === 'terminated',
    maxPerPeer: limits.maxPerPeer,
    maxPerProxy: limits.maxPerProxy,
    onTurnedAway(reason, address) {
      onTurnedAway?.(reason);
      line.add(reason, address);
    },
  });
  return line;
}

/** Answers what the HTTP parser refuses, in the shape of every other error. */
function refuseUnparsed(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  connections: Connections,
  log: Log,
): void {
  const code = codeOf(error);
  // A failed handshake, a reset, or an answer that is already on its way: nothing can be said any more.
  if (code === undefined || !socket.writable || connections.isAnswering(socket)) {
    // After a refusal the rest of what the client sends arrives here again; it is let run out.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  const requestId = randomUUID();
  const answer = refusalAnswer({ code }, requestId);
  log.info({ request_id: requestId, status: answer.status, code, reason: error.code }, 'request not parsed');
  socket.end(rawAnswer(answer));
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function codeOf(error: NodeJS.ErrnoException): RefusalCode | undefined {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'HEADERS_TOO_LARGE';
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'REQUEST_TIMEOUT';
  return error.code?.startsWith('HPE_') ? 'BAD_REQUEST' : undefined;
}
