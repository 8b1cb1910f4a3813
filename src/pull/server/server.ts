import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type ListenPlace, listen } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import { type RefusalCode, rawAnswer, refusalAnswer } from '../answers.ts';
import type { Certificate } from './certificate.ts';
import { guardConnections, summedLine, type TurnedAway } from './connection-gate.ts';
import { Connections } from './connections.ts';

export interface ServerOptions {
  readonly handler: RequestListener;
  /** `undefined` where the proxies end TLS: then only they may connect. */
  readonly pem: Certificate | undefined;
  /** Trusted ones, as CIDRs. */
  readonly proxies: readonly string[];
  readonly log: Log;
  /** Called for each connection that is turned away. */
  readonly onTurnedAway?: (reason: TurnedAway) => void;
  /** Set where other threads listen on the same port. */
  readonly shared?: SharedListening | undefined;
  /** Other limits, for tests. */
  readonly limits?: Partial<typeof LIMITS>;
}

/** What the servers of several threads have in common. */
export interface SharedListening {
  /** From `connectionsMemory`. */
  readonly connections: SharedArrayBuffer;
  /** So that a client resumes its TLS session on each of them. 48 random bytes. */
  readonly ticketKeys: Uint8Array;
}

export interface PublicServer {
  /** Resolves with the real address; port 0 picks a free one. */
  listen(place: ListenPlace): Promise<AddressInfo>;
  /** New connections get this certificate; those that are open keep theirs. */
  reload(pem: Certificate): void;
  /**
   * Stops accepting connections, answers the requests in progress and those that arrive on open connections within half
   * a second, and closes each connection after its answer. Destroys what is still open after `graceMs`.
   */
  stop(graceMs: number): Promise<void>;
}

const LIMITS = {
  /** Request line and headers together: enough for 1,000 of the longest corporate ids, encoded. */
  maxHeaderSize: 24 * 1024,
  /** Limits how long a client that sends its headers slowly holds a connection. */
  headersTimeout: 10_000,
  /** Of the whole request; it has no body. */
  requestTimeout: 15_000,
  /** How late Node may notice the two timeouts above; its default of 30 s would make them useless. */
  connectionsCheckingInterval: 1_000,
  /** Longer than the 60 s of common load balancers, which must be the first to close an idle connection. */
  keepAliveTimeout: 65_000,
  /** No limit: requests pipelined beyond one would get Node's empty 503. The rate limit bounds a key. */
  maxRequestsPerSocket: 0,
  /** A TLS connection holds some 50 KB: 100 MB at most. */
  maxConnections: 2_000,
  /** Of one IPv4 address or IPv6 /64: more than a customer's clients need, and too few to shut out others. */
  maxPerPeer: 64,
  /** Of one trusted proxy, which serves many customers. */
  maxPerProxy: 1_000,
  /** A connection that does not become TLS in this time is closed. */
  handshakeTimeout: 10_000,
};

/** How long a refused connection stays open so that its client can read the answer. */
const LINGER_MS = 1_000;

/**
 * A connection that was accepted when the stop began may ask for as long: two round trips of a distant client, which must
 * not see its request lost because this process, and not another one on the same port, accepted it.
 */
const LAST_REQUEST_MS = 500;

/** The public server: HTTPS, or HTTP to trusted proxies alone if they end TLS. */
export function createServer({ pem, log, shared, onTurnedAway, ...options }: ServerOptions): PublicServer {
  const limits = { ...LIMITS, ...options.limits };
  const http = { ...limits, requireHostHeader: false };
  const ticketKeys = shared && { ticketKeys: Buffer.from(shared.ticketKeys) };
  const server: Server =
    pem === undefined
      ? createHttpServer(http)
      : createHttpsServer({ ...http, ...secureTerms(pem), ...ticketKeys });
  server.maxRequestsPerSocket = limits.maxRequestsPerSocket;
  const connections = new Connections(server);
  const turnedAway = summedLine((counts, peer) => {
    log.warn({ turned_away: counts, last_peer: peer }, 'connections were turned away');
  });
  // Last, so that it comes before all other listeners for connections.
  guardConnections(server, {
    ...limits,
    proxies: options.proxies,
    onlyProxies: pem === undefined,
    memory: shared?.connections,
    onTurnedAway(reason, address) {
      onTurnedAway?.(reason);
      turnedAway.add(reason, address);
    },
  });
  // `close` calls it, but Node counts a connection as idle while a slow client still reads its answer.
  server.closeIdleConnections = () => undefined;
  server.on('request', options.handler);
  // Expectations other than 100-continue are ignored; Node would answer them with an empty 417.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseUnparsed(error, socket, connections, log);
  });
  return {
    reload(next) {
      if (server instanceof TlsServer) server.setSecureContext(secureTerms(next));
    },
    listen: (place) => listen(server, place),
    async stop(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.drain();
      const silent = world.setTimeout(() => connections.closeSilent(), Math.min(LAST_REQUEST_MS, graceMs));
      const cutOff = world.setTimeout(() => connections.destroyAll(), graceMs);
      await closed;
      world.clearTimeout(silent);
      world.clearTimeout(cutOff);
      turnedAway.end();
    },
  };
}

function secureTerms(pem: Certificate) {
  return { ...pem, minVersion: 'TLSv1.2' } as const;
}

/** Answers what the HTTP parser refuses, in the shape of every other error. */
function refuseUnparsed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  connections: Connections,
  log: Log,
): void {
  const code = codeOf(error);
  // A failed handshake, a reset, or an answer already in progress: no other answer can be sent.
  if (code === undefined || !socket.writable || connections.isAnswering(socket)) {
    // After a refusal the rest of the client's bytes arrives here too; the socket is already ending.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  const requestId = world.randomUUID();
  const answer = refusalAnswer({ code }, requestId);
  log.info({ request_id: requestId, status: answer.status, code, reason: error.code }, 'request not parsed');
  socket.end(rawAnswer(answer));
  world.setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function codeOf(error: NodeJS.ErrnoException): RefusalCode | undefined {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'HEADERS_TOO_LARGE';
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'REQUEST_TIMEOUT';
  return error.code?.startsWith('HPE_') ? 'BAD_REQUEST' : undefined;
}
