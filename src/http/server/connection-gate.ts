import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { parseAddress, trustedProxies } from '../../edge/client-address.ts';
import { peerOf } from '../../edge/peer.ts';

/** Why a connection was turned away. */
export type TurnedAway = 'peer_limit' | 'total_limit' | 'not_a_proxy';

export interface GateOptions {
  /** Trusted, as CIDRs. */
  readonly proxies: readonly string[];
  /** Nobody else may connect. */
  readonly onlyProxies: boolean;
  readonly maxPerPeer: number;
  /** Everybody behind it shares a proxy's connections. */
  readonly maxPerProxy: number;
  readonly onTurnedAway: (reason: TurnedAway, address: string | undefined) => void;
}

/**
 * Judges each new connection of a server before anything else hears of it, so that one that is turned away costs no
 * handshake: one peer must not take the connections of all others.
 */
export function guardConnections(server: Server, options: GateOptions): void {
  const { onTurnedAway } = options;
  const judge = createJudge(options);
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const reason = judge(socket);
    if (reason === undefined) {
      for (const listener of listeners) listener.call(server, socket);
      return;
    }
    onTurnedAway(reason, socket.remoteAddress);
    // At once, and without the wait for the other side that an orderly end has.
    socket.resetAndDestroy();
  });
  server.on('drop', (peer) => onTurnedAway('total_limit', peer?.remoteAddress));
}

function createJudge({ proxies, onlyProxies, maxPerPeer, maxPerProxy }: GateOptions) {
  const trusts = trustedProxies(proxies);
  const open = new Map<string, number>();
  return (socket: Socket): TurnedAway | undefined => {
    // A socket that is already closed has no address, and is nobody's.
    const address = parseAddress(socket.remoteAddress)?.toString();
    const isProxy = address !== undefined && trusts(address);
    if (onlyProxies && !isProxy) return 'not_a_proxy';
    const peer = (isProxy ? address : peerOf(address)) ?? '';
    const count = open.get(peer) ?? 0;
    if (count >= (isProxy ? maxPerProxy : maxPerPeer)) return 'peer_limit';
    open.set(peer, count + 1);
    socket.once('close', () => {
      const left = (open.get(peer) ?? 1) - 1;
      if (left > 0) open.set(peer, left);
      else open.delete(peer);
    });
    return undefined;
  };
}
