import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { steadyClock } from '../../base/clock.ts';
import { parseAddress } from '../../base/config/ip-address.ts';
import { world } from '../../base/world.ts';
import { peerOf, trustedProxies } from '../edge/addresses.ts';
import type { ServerConnections } from './connections.ts';

const BETWEEN_LINES_MS = 1_000;
/** How many handshakes of a peer may begin at once after a while without any. */
const AT_ONCE = 16;
/** A handshake that would have to wait longer is refused. One that waits holds a connection. */
const MAX_WAIT_MS = 2_000;
/** A forgotten peer may begin `AT_ONCE` handshakes again. */
const MAX_PACED_PEERS = 20_000;

/** The reasons for turning a connection away. */
export type TurnedAway = 'peer_limit' | 'network_limit' | 'total_limit' | 'handshake_rate' | 'not_a_proxy';

interface GateOptions {
  readonly connections: ServerConnections;
  /** The CIDR ranges of trusted proxies. */
  readonly proxies: readonly string[];
  /** True if only the proxies may connect. */
  readonly onlyProxies: boolean;
  readonly maxConnections: number;
  readonly maxPerPeer: number;
  readonly maxPerNetwork: number;
  readonly maxPerProxy: number;
  readonly handshakesPerSecond: number;
  readonly onTurnedAway: (reason: TurnedAway, address: string | undefined) => void;
}

/**
 * Limits the connections of each peer and of each network, so that nobody can take all of them, and paces their
 * handshakes. A new connection is checked before the server's other listeners see it, so that one that is turned away
 * costs no handshake.
 */
export function guardConnections(server: Server, options: GateOptions): void {
  const { onTurnedAway } = options;
  const check = createCheck(options);
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  const begin = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket);
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const verdict = check(socket);
    if (verdict === 0) return begin(socket);
    if (typeof verdict === 'number') return beginLater(socket, verdict, begin);
    onTurnedAway(verdict, socket.remoteAddress);
    // An orderly shutdown would wait for the other side.
    socket.resetAndDestroy();
  });
}

function beginLater(socket: Socket, waitMs: number, begin: (socket: Socket) => void): void {
  const ignore = (): void => undefined;
  socket.on('error', ignore); // `close` follows
  const timer = world.setTimeout(() => {
    socket.off('error', ignore);
    begin(socket);
  }, waitMs);
  socket.once('close', () => world.clearTimeout(timer));
}

/** Makes a function that returns after how many milliseconds a handshake may begin, or why it may not. */
function createCheck(options: GateOptions): (socket: Socket) => TurnedAway | number {
  const { connections, maxConnections, maxPerNetwork } = options;
  const trusts = trustedProxies(options.proxies);
  const waitOf = createPace(options.handshakesPerSecond);
  return (socket) => {
    // A socket that is already closed has no address. These are counted together.
    const address = parseAddress(socket.remoteAddress)?.toString();
    const isProxy = address !== undefined && trusts(address);
    if (options.onlyProxies && !isProxy) return 'not_a_proxy';
    const { peer, networks } = isProxy ? { peer: address, networks: [] } : peerOf(address);
    if (connections.countOf(peer) >= (isProxy ? options.maxPerProxy : options.maxPerPeer))
      return 'peer_limit';
    const waitMs = isProxy ? 0 : waitOf(peer);
    if (waitMs > MAX_WAIT_MS) return 'handshake_rate';
    for (const network of networks) {
      const isFull = connections.countOf(network) >= maxPerNetwork;
      if (isFull && !connections.endOldestUnproven(network)) return 'network_limit';
    }
    if (connections.size >= maxConnections && !connections.endOldestUnproven()) return 'total_limit';
    connections.add(socket, [peer, ...networks], isProxy);
    return waitMs;
  };
}

/** Makes a function that spreads the handshakes of a peer over time, and returns how long the next one has to wait. */
function createPace(perSecond: number): (peer: string) => number {
  const betweenMs = 1_000 / perSecond;
  /** When the next handshake of a peer is due, if its peer had made them evenly. */
  const due = new LRUCache<string, number>({ max: MAX_PACED_PEERS });
  return (peer) => {
    const nowMs = steadyClock.now();
    const dueMs = Math.max(due.get(peer) ?? -Infinity, nowMs - AT_ONCE * betweenMs);
    const waitMs = Math.max(0, dueMs - nowMs);
    if (waitMs <= MAX_WAIT_MS) due.set(peer, dueMs + betweenMs);
    return waitMs;
  };
}

/**
 * Logs something that outsiders can cause any number of times, in at most one line a second: at once the first time,
 * then with counts by reason since the last line. `end` writes the counts that have not been written yet.
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
