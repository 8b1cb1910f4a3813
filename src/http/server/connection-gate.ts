import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { parseAddress, peerOf, trustedProxies } from '../../edge/addresses.ts';

const BETWEEN_LINES_MS = 1_000;

/** Why a connection was turned away. */
export type TurnedAway = 'peer_limit' | 'total_limit' | 'not_a_proxy';

export interface GateOptions {
  /** Trusted proxies, as CIDRs. */
  readonly proxies: readonly string[];
  /** Only the proxies may connect. */
  readonly onlyProxies: boolean;
  readonly maxPerPeer: number;
  /** Higher, since a proxy's connections are shared by all clients behind it. */
  readonly maxPerProxy: number;
  readonly onTurnedAway: (reason: TurnedAway, address: string | undefined) => void;
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
  server.on('drop', (peer) => onTurnedAway('total_limit', peer?.remoteAddress));
}

function createCheck({ proxies, onlyProxies, maxPerPeer, maxPerProxy }: GateOptions) {
  const trusts = trustedProxies(proxies);
  const open = new Map<string, number>();
  return (socket: Socket): TurnedAway | undefined => {
    // A socket that is already closed has no address; these are counted together.
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

/**
 * Logs what outsiders can cause any number of times in at most one line a second: the first time at once, then how often
 * it happened since the last line, by reason.
 */
export class SummedLine {
  readonly #write: (counts: Readonly<Record<string, number>>, last: string | undefined) => void;
  #counts = new Map<string, number>();
  #last: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (counts: Readonly<Record<string, number>>, last: string | undefined) => void) {
    this.#write = write;
  }

  add(reason: string, detail?: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#last = detail;
    if (this.#timer === undefined) this.#flush();
  }

  /** Writes what has not been written yet. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#counts.size > 0) this.#write(Object.fromEntries(this.#counts), this.#last);
    this.#counts.clear();
  }

  #flush(): void {
    this.end();
    this.#timer = setTimeout(() => {
      if (this.#counts.size > 0) this.#flush();
      else this.#timer = undefined;
    }, BETWEEN_LINES_MS).unref();
  }
}
