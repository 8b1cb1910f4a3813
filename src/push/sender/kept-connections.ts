import type { Clock } from '../../base/clock.ts';
import type { ReceiverConnection } from './receiver-connection.ts';

const MAX_KEPT = 1_024;
/** As many as can be in flight: several webhooks may share one receiver, and a handshake costs most. */
const MAX_KEPT_PER_ORIGIN = 512;

export interface KeptConnections {
  /** An idle connection to one of the addresses, the one used last; it belongs to the caller then. */
  take(origin: string, addresses: readonly string[]): ReceiverConnection | undefined;
  /** Whether there is an idle connection to this receiver, which may be too old. */
  has(origin: string): boolean;
  /** Keeps a connection whose answer is complete; where there are too many, the longest idle one is closed. */
  give(connection: ReceiverConnection): void;
  /** Counts the connection among the open ones until it is closed. */
  opened(connection: ReceiverConnection): void;
  /** Connections to this receiver that are open, idle or in use. */
  open(origin: string): number;
  /** Closes all idle connections, also those that are given later. */
  close(): void;
}

/** Idle connections: at most 512 to one receiver, 1,024 in all. One whose idle time is over is not used, and soon closed. */
export function createKeptConnections(clock: Clock): KeptConnections {
  const idle = new Map<string, ReceiverConnection[]>();
  /** All of them, the longest idle first. */
  const all = new Set<ReceiverConnection>();
  const open = new Map<string, number>();
  let closed = false;

  function remove(connection: ReceiverConnection): void {
    if (!all.delete(connection)) return;
    const same = idle.get(connection.origin) ?? [];
    const index = same.lastIndexOf(connection);
    if (index >= 0) same.splice(index, 1);
    if (same.length === 0) idle.delete(connection.origin);
  }

  function drop(connection: ReceiverConnection | undefined): void {
    if (connection === undefined) return;
    remove(connection);
    connection.socket.destroy();
  }

  return {
    take(origin, addresses) {
      const now = clock.now();
      for (const connection of (idle.get(origin) ?? []).toReversed()) {
        const idleMs = now - (connection.idleSinceMs ?? now);
        if (connection.socket.destroyed || idleMs >= connection.keepIdleMs) drop(connection);
        else if (addresses.includes(connection.address)) {
          remove(connection);
          return connection;
        }
      }
      return undefined;
    },
    has: (origin) => idle.has(origin),
    opened({ origin, socket }) {
      open.set(origin, (open.get(origin) ?? 0) + 1);
      socket.once('close', () => {
        const left = (open.get(origin) ?? 0) - 1;
        if (left > 0) open.set(origin, left);
        else open.delete(origin);
      });
    },
    open: (origin) => open.get(origin) ?? 0,
    give(connection) {
      if (closed || connection.keepIdleMs === 0) connection.socket.destroy();
      if (connection.socket.destroyed) return;
      if (connection.idleSinceMs === undefined) connection.socket.once('close', () => remove(connection));
      connection.idleSinceMs = clock.now();
      const same = idle.get(connection.origin);
      if (same === undefined) idle.set(connection.origin, [connection]);
      else same.push(connection);
      all.add(connection);
      if (same !== undefined && same.length > MAX_KEPT_PER_ORIGIN) drop(same[0]);
      if (all.size > MAX_KEPT) drop(all.values().next().value);
    },
    close() {
      closed = true;
      for (const connection of all) drop(connection);
    },
  };
}
