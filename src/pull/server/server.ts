import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Certificate } from '../../base/config/certificate-files.ts';
import { type ListenPlace, listen } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import { type RefusalCode, rawAnswer, refusalAnswer } from '../answers.ts';
import { guardConnections, summedLine, type TurnedAway } from './connection-gate.ts';
import { ServerConnections } from './connections.ts';

export interface ServerOptions {
  readonly handler: RequestListener;
  /** `undefined` if proxies end TLS. Only they may connect then. */
  readonly pem: Certificate | undefined;
  /** The CIDR ranges of trusted proxies. */
  readonly proxies: readonly string[];
  readonly log: Log;
  /** The server's own connections, if others need to know them too. */
  readonly connections?: ServerConnections;
  /** Called for each connection that is turned away. */
  readonly onTurnedAway?: (reason: TurnedAway) => void;
  /** Different limits, for tests. */
  readonly limits?: Partial<typeof LIMITS>;
}

export interface PublicServer {
  /** Resolves with the actual address; port 0 picks a free port. */
  listen(place: ListenPlace): Promise<AddressInfo>;
  /** Uses this certificate for new connections. Open connections keep theirs. */
  reload(pem: Certificate): void;
  /** Goes on as before, but makes each connection close after its answer. */
  drain(): void;
  /**
   * Stops accepting connections, answers the requests in progress and those that arrive on open connections within half
   * a second, and closes each connection after its answer. Destroys what is still open after `graceMs`.
   */
  stop(graceMs: number): Promise<void>;
}

const LIMITS = {
  /** The size of request line and headers together: enough for 1,000 of the longest corporate ids, encoded. */
  maxHeaderSize: 24 * 1024,
  /** How long a client that sends its headers slowly can hold a connection. */
  headersTimeout: 10_000,
  /** The time for the whole request, which has no body. */
  requestTimeout: 15_000,
  /** How late Node may notice the two timeouts above; its default of 30 s would make them useless. */
  connectionsCheckingInterval: 1_000,
  /** It is longer than the 60 s of common load balancers, which must be the first to close an idle connection. */
  keepAliveTimeout: 65_000,
  /**
   * A connection on which nothing moves for this long is closed. While its client does not read an answer, Node waits
   * twice as long.
   */
  timeout: 15_000,
  /** A TLS connection takes about 50 KB, so these take at most 100 MB. */
  maxConnections: 2_000,
  /** The connections of one IPv4 address or IPv6 /64: more than a customer needs, and too few to shut out others. */
  maxPerPeer: 64,
  /** The connections of one IPv4 /24, IPv6 /56 or IPv6 /48. Beyond it, the oldest without an accepted key ends. */
  maxPerNetwork: 256,
  /** The connections of one trusted proxy, which serves many customers. */
  maxPerProxy: 1_000,
  /** The handshakes of one peer, since each takes a millisecond or two of the thread that answers all others. */
  handshakesPerSecond: 32,
  /** A connection that does not become TLS in this time is closed. */
  handshakeTimeout: 10_000,
};

/** How long a refused connection stays open so that its client can read the answer. */
const LINGER_MS = 1_000;

/**
 * How long connections that are open when the stop begins may still send a request: two round trips of a distant
 * client. Its request must not be lost because this process accepted it instead of another one on the same port.
 */
const LAST_REQUEST_MS = 500;

/** Creates the public server: HTTPS, or HTTP for trusted proxies only if they end TLS. */
export function createServer({ pem, log, onTurnedAway, ...options }: ServerOptions): PublicServer {
  const limits = { ...LIMITS, ...options.limits };
  const http = { ...limits, requireHostHeader: false };
  const server: Server =
    pem === undefined ? createHttpServer(http) : createHttpsServer({ ...http, ...secureTerms(pem) });
  server.timeout = limits.timeout;
  const { connections = new ServerConnections() } = options;
  const turnedAway = summedLine((counts, peer) => {
    log.warn({ turned_away: counts, last_peer: peer }, 'connections were turned away');
  });
  // The guard is installed last, so that it runs before all other listeners for connections.
  guardConnections(server, {
    ...limits,
    connections,
    proxies: options.proxies,
    onlyProxies: pem === undefined,
    onTurnedAway(reason, address) {
      onTurnedAway?.(reason);
      turnedAway.add(reason, address);
    },
  });
  // `close` calls this, but Node counts a connection as idle while a slow client is still reading its answer.
  server.closeIdleConnections = () => undefined;
  server.on('timeout', (socket) => connections.endStalled(socket));
  connections.answerInTurn(server, options.handler);
  // Expectations other than 100-continue are ignored. Node would answer them with an empty 417.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (request, socket) => answerConnect(server, request, socket as Socket));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseUnparsed(error, socket, connections, log);
  });
  return {
    reload(next) {
      if (server instanceof TlsServer) server.setSecureContext(secureTerms(next));
    },
    listen: (place) => listen(server, place),
    drain: () => connections.drain(),
    async stop(graceMs) {
      connections.drain();
      await world.nextTurn(); // accepts the connections that wait in the listener's queue, which its end would reset
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      // The turn reads the requests that have arrived, so that no connection is closed with one.
      const closeSilent = () => world.setImmediate(() => connections.closeSilent());
      const silent = world.setTimeout(closeSilent, Math.min(LAST_REQUEST_MS, graceMs));
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

/** Answers a CONNECT like any other request. Without a listener for it, Node would close the connection. */
function answerConnect(server: Server, request: IncomingMessage, socket: Socket): void {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => endSoon(socket));
  // The data for the tunnel is dropped.
  socket.on('error', () => undefined).resume();
  server.emit('request', request, response);
}

/** Closes the connection after the client had time to read the answer, whatever the client does. */
function endSoon(socket: Socket, answer = ''): void {
  socket.end(answer);
  world.setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** Answers a request that the HTTP parser refuses in the same form as every other error. */
function refuseUnparsed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  connections: ServerConnections,
  log: Log,
): void {
  const code = codeOf(error);
  // After a failed handshake, a reset, or the beginning of another answer, no answer can be sent.
  if (code === undefined || !socket.writable || connections.isAnswering(socket)) {
    // The rest of the client's bytes arrives here too after a refusal, when the socket is already ending.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  const requestId = world.randomUUID();
  const answer = refusalAnswer({ code }, requestId);
  log.info({ request_id: requestId, status: answer.status, code, reason: error.code }, 'request not parsed');
  endSoon(socket, rawAnswer(answer));
}

function codeOf(error: NodeJS.ErrnoException): RefusalCode | undefined {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'HEADERS_TOO_LARGE';
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'REQUEST_TIMEOUT';
  return error.code?.startsWith('HPE_') ? 'BAD_REQUEST' : undefined;
}
