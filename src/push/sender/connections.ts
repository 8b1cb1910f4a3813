import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { Target } from '../targets/target.ts';

const KEEP_IDLE_MS = 4_000;
/** A connection is closed this long before the receiver would close it. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
const KEEP_ALIVE_TIMEOUT = /timeout\s*=\s*"?(\d{1,9})/i;
const MAX_IDLE = 1_024;
/** This is as many as can be in use: several webhooks may share a receiver, and handshakes are expensive. */
const MAX_IDLE_PER_ORIGIN = 512;

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
  /** Whether an exchange has ended on it. */
  used: boolean;
  /** How long it may stay idle, by the receiver's last answer; 0 if not at all. */
  keepIdleMs: number;
  /** `undefined` while it has never been idle. */
  idleSinceMs: number | undefined;
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
    idleSinceMs: undefined,
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
  readonly #steady: Clock;
  /** The idle connections to each receiver, the longest idle first. */
  readonly #idle = new Map<string, ReceiverConnection[]>();
  /** All idle connections, the longest idle first. */
  readonly #all = new Set<ReceiverConnection>();
  readonly #open = new Map<string, number>();
  #isClosed = false;

  constructor(steady: Clock) {
    this.#steady = steady;
  }

  /** Hands out the idle connection to one of the addresses that was used last. */
  take(origin: string, addresses: readonly string[]): ReceiverConnection | undefined {
    const nowMs = this.#steady.now();
    for (const connection of (this.#idle.get(origin) ?? []).toReversed()) {
      const idleMs = nowMs - (connection.idleSinceMs ?? nowMs);
      if (connection.socket.destroyed || idleMs >= connection.keepIdleMs) this.#drop(connection);
      else if (addresses.includes(connection.address)) {
        this.#remove(connection);
        return connection;
      }
    }
    return undefined;
  }

  /** Whether there is an idle connection to this receiver, even one that is too old. */
  hasIdle(origin: string): boolean {
    return this.#idle.has(origin);
  }

  /** Keeps a connection whose answer is complete. If there are too many, the longest idle one is closed. */
  give(connection: ReceiverConnection): void {
    if (this.#isClosed || connection.keepIdleMs === 0) connection.socket.destroy();
    if (connection.socket.destroyed) return;
    if (connection.idleSinceMs === undefined) connection.socket.once('close', () => this.#remove(connection));
    connection.idleSinceMs = this.#steady.now();
    const same = this.#idle.get(connection.origin) ?? [];
    this.#idle.set(connection.origin, same);
    same.push(connection);
    this.#all.add(connection);
    if (same.length > MAX_IDLE_PER_ORIGIN) this.#drop(same[0]);
    if (this.#all.size > MAX_IDLE) this.#drop(this.#all.values().next().value);
  }

  /** Counts a new connection as open until it is closed. */
  opened({ origin, socket }: ReceiverConnection): void {
    this.#open.set(origin, this.open(origin) + 1);
    socket.once('close', () => {
      const left = this.open(origin) - 1;
      if (left > 0) this.#open.set(origin, left);
      else this.#open.delete(origin);
    });
  }

  /** The number of open connections to this receiver, idle or in use. */
  open(origin: string): number {
    return this.#open.get(origin) ?? 0;
  }

  /** Closes all idle connections, and those that are given later. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#all) this.#drop(connection);
  }

  #drop(connection: ReceiverConnection | undefined): void {
    if (connection === undefined) return;
    this.#remove(connection);
    connection.socket.destroy();
  }

  #remove(connection: ReceiverConnection): void {
    if (!this.#all.delete(connection)) return;
    const same = this.#idle.get(connection.origin) ?? [];
    const index = same.lastIndexOf(connection);
    if (index >= 0) same.splice(index, 1);
    if (same.length === 0) this.#idle.delete(connection.origin);
  }
}
