import type { TLSSocket } from 'node:tls';
import type { Target } from '../targets/target.ts';

const KEEP_IDLE_MS = 4_000;
/** It is closed this long before the receiver would close it. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
const KEEP_ALIVE_TIMEOUT = /timeout\s*=\s*"?(\d{1,9})/i;

/** What an exchange learns from its connection. */
export interface ConnectionListener {
  onBytes(bytes: Buffer): void;
  /** Called at least once, with an error unless the receiver closed the connection properly. */
  onClosed(error: Error | undefined): void;
}

/** One TLS connection to a receiver: one request at a time. */
export interface ReceiverConnection {
  readonly origin: string;
  /** Its address, which was judged. */
  readonly address: string;
  readonly socket: TLSSocket;
  /** The exchange under way. While there is none, whatever arrives closes the connection. */
  listener: ConnectionListener | undefined;
  /** Whether an exchange has ended on it. */
  used: boolean;
  /** How long it may stay idle, as the receiver said last; 0: not at all. */
  keepIdleMs: number;
  /** `undefined` while it has never been idle. */
  idleSinceMs: number | undefined;
}

/** A connection on a socket whose handshake is complete. */
export function receiverConnection(target: Target, address: string, socket: TLSSocket): ReceiverConnection {
  const connection: ReceiverConnection = {
    origin: target.origin,
    address,
    socket,
    listener: undefined,
    used: false,
    keepIdleMs: KEEP_IDLE_MS,
    idleSinceMs: undefined,
  };
  const close = (error?: Error): void => {
    connection.listener?.onClosed(error);
    // TLS leaves a socket open after an error, and one whose other side has ended.
    socket.destroy();
  };
  socket.on('data', (bytes: Buffer) => {
    if (connection.listener === undefined) socket.destroy();
    else connection.listener.onBytes(bytes);
  });
  socket.once('end', () => close());
  socket.once('error', close);
  socket.once('close', () => close(new Error('the connection was closed')));
  socket.on('timeout', () => socket.destroy());
  return connection;
}

/** How long a connection may stay idle by an answer's `Keep-Alive` header. */
export function keepIdleMs(keepAlive: string | undefined): number {
  const seconds = KEEP_ALIVE_TIMEOUT.exec(keepAlive ?? '')?.[1];
  if (seconds === undefined) return KEEP_IDLE_MS;
  return Math.max(0, Math.min(KEEP_IDLE_MS, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS));
}
