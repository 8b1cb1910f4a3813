import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { world } from '../../base/world.ts';
import { parseAddress, peerOf, trustedProxies } from '../edge/addresses.ts';
import { SharedTable, tableMemory } from '../edge/counts/shared-table.ts';

const BETWEEN_LINES_MS = 1_000;

/** Why a connection was turned away. */
export type TurnedAway = 'peer_limit' | 'total_limit' | 'not_a_proxy';

interface GateOptions {
  /** Trusted proxies, as CIDRs. */
  readonly proxies: readonly string[];
  /** Only the proxies may connect. */
  readonly onlyProxies: boolean;
  readonly maxConnections: number;
  readonly maxPerPeer: number;
  readonly maxPerProxy: number;
  /** From `connectionsMemory`, where the threads of a process count their connections together. */
  readonly memory: SharedArrayBuffer | undefined;
  readonly onTurnedAway: (reason: TurnedAway, address: string | undefined) => void;
}

/** Peers that are counted at once: each has a connection, so that there are never as many. */
const MAX_PEERS = 10_000;
/** No peer's name. */
const TOTAL = '*';

export function connectionsMemory(): SharedArrayBuffer {
  return tableMemory(MAX_PEERS);
}

/**
 * Checks each new connection of a server before its other listeners, so that one that is turned away costs no handshake.
 * So one peer can't take all connections.
 */
export function guardConnections(server: Server, options: GateOptions): void {
  const { onTurnedAway } = options;
  const check = createCheck(options);
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const reason = check(socket);
    if (reason === undefined) {
      for (const listener of listeners) listener.call(server, socket);
      return;
    }
    onTurnedAway(reason, socket.remoteAddress);
    // An orderly end would wait for the other side.
    socket.resetAndDestroy();
  });
}

function createCheck({ proxies, onlyProxies, maxConnections, maxPerPeer, maxPerProxy, memory }: GateOptions) {
  const trusts = trustedProxies(proxies);
  const open = new SharedTable(memory ?? connectionsMemory(), { isAlive: ({ count }) => count > 0 });
  const add = (name: string, limit: number): boolean =>
    open.change(name, (connections) => {
      if (connections.count >= limit) return false;
      connections.count += 1;
      if (name === TOTAL) connections.timeMs = Infinity; // it gives way to no peer
      return true;
    });
  const remove = (name: string): void =>
    open.change(name, (connections) => {
      connections.count = Math.max(0, connections.count - 1); // a forgotten one has none
    });
  return (socket: Socket): TurnedAway | undefined => {
    // A socket that is already closed has no address; these are counted together.
    const address = parseAddress(socket.remoteAddress)?.toString();
    const isProxy = address !== undefined && trusts(address);
    if (onlyProxies && !isProxy) return 'not_a_proxy';
    const peer = (isProxy ? address : peerOf(address)) ?? '';
    if (!add(peer, isProxy ? maxPerProxy : maxPerPeer)) return 'peer_limit';
    if (!add(TOTAL, maxConnections)) {
      remove(peer);
      return 'total_limit';
    }
    socket.once('close', () => {
      remove(peer);
      remove(TOTAL);
    });
    return undefined;
  };
}

/**
 * Logs what outsiders can cause any number of times in at most one line a second: the first time at once, then how often
 * it happened since the last line, by reason. `end` writes what has not been written yet.
 */
export function summedLine(
  write: (counts: Readonly<Record<string, number>>, last: string | undefined) => void,
): { add(reason: string, detail?: string): void; end(): void } {
  let counts: Record<string, number> = {};
  let last: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  const writeRest = (): boolean => {
    if (Object.keys(counts).length === 0) return false;
    write(counts, last);
    counts = {};
    return true;
  };
  const tick = (): void => {
    timer = writeRest() ? world.setTimeout(tick, BETWEEN_LINES_MS).unref() : undefined;
  };
  return {
    add(reason, detail) {
      counts[reason] = (counts[reason] ?? 0) + 1;
      last = detail;
      if (timer === undefined) tick();
    },
    end() {
      world.clearTimeout(timer);
      timer = undefined;
      writeRest();
    },
  };
}
