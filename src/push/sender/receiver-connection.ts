import type { TLSSocket } from 'node:tls';
import { Client } from 'undici';
import type { Target } from '../targets/target.ts';

/** Headers beyond it are a fault of the protocol. */
const MAX_HEADER_BYTES = 64 * 1024;
const KEEP_IDLE_MS = 4_000;
/** It is closed this long before the receiver would close it. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
const KEEP_ALIVE_TIMEOUT = /timeout\s*=\s*"?(\d{1,9})/i;

/** One TLS connection to a receiver, with the HTTP client that speaks on it: one request at a time. */
export interface ReceiverConnection {
  readonly origin: string;
  /** Its address, which was judged. */
  readonly address: string;
  readonly socket: TLSSocket;
  readonly client: Client;
  /** How long it may stay idle, as the receiver said last; 0: not at all. */
  keepIdleMs: number;
  /** `undefined` while it has never been idle. */
  idleSinceMs: number | undefined;
}

/** Puts an HTTP client on a socket. The client never opens another: then a connection would not be judged. */
export function receiverConnection(target: Target, address: string, socket: TLSSocket): ReceiverConnection {
  // TLS leaves a socket open after an error: the request would wait, or end without the error.
  socket.once('error', () => socket.destroy());
  let taken = false;
  const client = new Client(target.origin, {
    pipelining: 1,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The sender limits the whole exchange to 500 ms.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_IDLE_MS,
    keepAliveMaxTimeout: KEEP_IDLE_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    connect(_options, callback) {
      const first = !taken;
      taken = true;
      // The client is not ready for an answer at once.
      queueMicrotask(() => {
        if (first && !socket.destroyed) callback(null, socket);
        else callback(new Error('the connection is closed'), null);
      });
    },
  });
  return { origin: target.origin, address, socket, client, keepIdleMs: KEEP_IDLE_MS, idleSinceMs: undefined };
}

/** How long a connection may stay idle by an answer's `Keep-Alive` header. */
export function keepIdleMs(keepAlive: string | undefined): number {
  const seconds = KEEP_ALIVE_TIMEOUT.exec(keepAlive ?? '')?.[1];
  if (seconds === undefined) return KEEP_IDLE_MS;
  return Math.max(0, Math.min(KEEP_IDLE_MS, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS));
}
