import type { TLSSocket } from 'node:tls';
import type { Target } from '../targets/target.ts';

const KEEP_IDLE_MS = 4_000;
/** A connection is closed this long before the receiver would close it. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
const KEEP_ALIVE_TIMEOUT = /timeout\s*=\s*"?(\d{1,9})/i;
/** While more are open, none is kept after its answer. A third of them can be in use. */
const MAX_OPEN = 1_536;

/** The exchange that uses a connection. */
export interface ConnectionListener {
  onBytes(bytes: Buffer): void;
  /** Called at least once, with an error unless the receiver closed the connection properly. */
  onClosed(error: Error | undefined): void;
}

/** A TLS connection to a receiver, for one request at a time. */
export interface ReceiverConnection {
  readonly origin: string;
  /** The address that it leads to, which was judged. */
  readonly address: string;
  readonly socket: TLSSocket;
  /** The exchange under way. While there is none, anything that arrives closes the connection. */
  listener: ConnectionListener | undefined;
  /** True if an exchange has ended on it. */
  used: boolean;
  /** How long it may stay idle, by the receiver's last answer; 0 if not at all. */
  keepIdleMs: number;
}

/** Makes a connection from a socket whose handshake is complete. */
export function receiverConnection(target: Target, address: string, socket: TLSSocket): ReceiverConnection {
  const connection: ReceiverConnection = {
    origin: target.origin,
    address,
    socket,
    listener: undefined,
    used: false,
    keepIdleMs: KEEP_IDLE_MS,
  };
  const close = (error?: Error): void => {
    connection.listener?.onClosed(error);
    // TLS leaves a socket open after an error, and after the other side has ended.
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

/** How long a connection may stay idle, by the `Keep-Alive` header of an answer. */
export function keepIdleMs(keepAlive: string | undefined): number {
  const seconds = KEEP_ALIVE_TIMEOUT.exec(keepAlive ?? '')?.[1];
  if (seconds === undefined) return KEEP_IDLE_MS;
  return Math.max(0, Math.min(KEEP_IDLE_MS, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS));
}

/** The connections to all receivers: how many are open, and those that are idle and can be used again. */
export class Connections {
  /** The idle connections to each receiver, the longest idle first. */
  readonly #idle = new Map<string, ReceiverConnection[]>();
  readonly #openByOrigin = new Map<string, number>();
  #open = 0;
  #isClosed = false;

  /** Hands out the idle connection to one of the addresses that was used last. */
  take(origin: string, addresses: readonly string[]): ReceiverConnection | undefined {
    const idle = this.#idle.get(origin) ?? [];
    const connection = idle.findLast(
      ({ address, socket }) => !socket.destroyed && addresses.includes(address),
    );
    if (connection !== undefined) this.#remove(connection);
    return connection;
  }

  /** True if there is an idle connection to this receiver. */
  hasIdle(origin: string): boolean {
    return this.#idle.has(origin);
  }

  /** Keeps a connection whose answer is complete, unless too many are open. Its socket closes it when it has been idle for too long. */
  give(connection: ReceiverConnection): void {
    const { origin, socket, keepIdleMs: idleMs } = connection;
    socket.setTimeout(idleMs);
    if (this.#isClosed || idleMs === 0 || this.#open > MAX_OPEN) socket.destroy();
    if (socket.destroyed) return;
    const idle = this.#idle.get(origin) ?? [];
    this.#idle.set(origin, idle);
    idle.push(connection);
  }

  /** Counts a new connection as open until it is closed. */
  opened(connection: ReceiverConnection): void {
    const { origin, socket } = connection;
    this.#count(origin, 1);
    socket.once('close', () => {
      this.#remove(connection);
      this.#count(origin, -1);
    });
  }

  /** The number of open connections to this receiver, idle or in use. */
  open(origin: string): number {
    return this.#openByOrigin.get(origin) ?? 0;
  }

  /** Closes all idle connections, and those that are given later. */
  close(): void {
    this.#isClosed = true;
    for (const { socket } of [...this.#idle.values()].flat()) socket.destroy();
  }

  #count(origin: string, change: 1 | -1): void {
    this.#open += change;
    const open = this.open(origin) + change;
    if (open > 0) this.#openByOrigin.set(origin, open);
    else this.#openByOrigin.delete(origin);
  }

  #remove(connection: ReceiverConnection): void {
    const idle = this.#idle.get(connection.origin) ?? [];
    const index = idle.lastIndexOf(connection);
    if (index >= 0) idle.splice(index, 1);
    if (idle.length === 0) this.#idle.delete(connection.origin);
  }
}
