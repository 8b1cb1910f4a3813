import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { parseAddress } from '../../base/config/ip-address.ts';
import { world } from '../../base/world.ts';
import { peerOf, trustedProxies } from '../edge/addresses.ts';

const BETWEEN_LINES_MS = 1_000;

/** Why a connection was turned away. */
export type TurnedAway = 'peer_limit' | 'total_limit' | 'not_a_proxy';

interface GateOptions {
  /** The CIDR ranges of trusted proxies. */
  readonly proxies: readonly string[];
  /** True if only the proxies may connect. */
  readonly onlyProxies: boolean;
  readonly maxConnections: number;
  readonly maxPerPeer: number;
  readonly maxPerProxy: number;
  readonly onTurnedAway: (reason: TurnedAway, address: string | undefined) => void;
}

/**
 * Limits the connections of each peer, so that no peer can take all of them. A new connection is checked before the
 * server's other listeners see it, so that one that is turned away costs no handshake.
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
    // An orderly shutdown would wait for the other side.
    socket.resetAndDestroy();
  });
}

function createCheck({ proxies, onlyProxies, maxConnections, maxPerPeer, maxPerProxy }: GateOptions) {
  const trusts = trustedProxies(proxies);
  const openOf = new Map<string, number>();
  let open = 0;
  return (socket: Socket): TurnedAway | undefined => {
    // A socket that is already closed has no address. These are counted together.
    const address = parseAddress(socket.remoteAddress)?.toString();
    const isProxy = address !== undefined && trusts(address);
    if (onlyProxies && !isProxy) return 'not_a_proxy';
    const peer = (isProxy ? address : peerOf(address)) ?? '';
    const ofPeer = openOf.get(peer) ?? 0;
    if (ofPeer >= (isProxy ? maxPerProxy : maxPerPeer)) return 'peer_limit';
    if (open >= maxConnections) return 'total_limit';
    openOf.set(peer, ofPeer + 1);
    open += 1;
    socket.once('close', () => {
      const left = (openOf.get(peer) ?? 1) - 1;
      if (left === 0) openOf.delete(peer);
      else openOf.set(peer, left);
      open -= 1;
    });
    return undefined;
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
