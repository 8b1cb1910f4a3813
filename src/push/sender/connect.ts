import { isIP } from 'node:net';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { LRUCache } from 'lru-cache';
import { world } from '../../base/world.ts';
import type { FailureKind } from '../queue/delivery.ts';
import { network } from '../targets/network.ts';
import type { Target } from '../targets/target.ts';

const MAX_ADDRESSES = 16;
/** By then the connection to the last address is started, whatever the others do. */
const ALL_STARTED_WITHIN_MS = 250;
const MAX_HEAD_START_MS = 100;

export interface ConnectOptions {
  readonly target: Target;
  /** Judged, at least one; the first 16 are tried. */
  readonly addresses: readonly string[];
  readonly secureContext: SecureContext;
  /** TLS sessions by origin: resuming one costs the receiver a fraction of a handshake. */
  readonly sessions: LRUCache<string, Buffer>;
  readonly signal: AbortSignal;
  /** Called when an address accepts the connection, and when it completes the handshake. */
  readonly onStep: () => void;
}

export type Connected =
  | { readonly ok: true; readonly socket: TLSSocket; readonly address: string }
  | { readonly ok: false; readonly kind: FailureKind; readonly detail: string };

/**
 * Opens a TLS connection to one of the addresses, for the target's name: the first that completes its handshake.
 * The next address is tried when the one before failed, or has had its head start. Where all fail, the failure
 * of the first is returned. When the signal aborts, everything is closed, and the promise stays pending.
 */
export function connectToAny(options: ConnectOptions): Promise<Connected> {
  const waiting = options.addresses.slice(0, MAX_ADDRESSES);
  const headStartMs = Math.min(MAX_HEAD_START_MS, ALL_STARTED_WITHIN_MS / waiting.length);
  const open = new Set<TLSSocket>();
  let firstFailure: Connected | undefined;
  let headStart: NodeJS.Timeout | undefined;
  return new Promise((resolve) => {
    const closeAll = (): void => {
      world.clearTimeout(headStart);
      waiting.length = 0;
      for (const socket of open) socket.destroy();
    };
    const startNext = (): void => {
      world.clearTimeout(headStart);
      const address = waiting.shift();
      if (address === undefined) return;
      if (waiting.length > 0) headStart = world.setTimeout(startNext, headStartMs);
      const socket = openSocket(address, options);
      open.add(socket);
      socket.once('connect', options.onStep);
      socket.once('secureConnect', () => {
        options.onStep();
        open.delete(socket);
        options.signal.removeEventListener('abort', closeAll);
        closeAll();
        resolve({ ok: true, socket, address });
      });
      // It stays: an error with no listener would end the process. The exchange reports later ones.
      socket.on('error', (error) => {
        if (!open.delete(socket)) return;
        firstFailure ??= { ok: false, ...connectFailure(error) };
        if (waiting.length > 0) startNext();
        else if (open.size === 0) resolve(firstFailure);
      });
    };
    options.signal.addEventListener('abort', closeAll, { once: true });
    startNext();
  });
}

function openSocket(address: string, { target, secureContext, sessions }: ConnectOptions): TLSSocket {
  const session = sessions.get(target.origin);
  const socket = network.connect({
    ...(session === undefined ? {} : { session }),
    host: address,
    port: target.port,
    secureContext,
    ALPNProtocols: ['http/1.1'],
    // The certificate must be for this name, or else for the address itself.
    ...(isIP(target.host) === 0 ? { servername: target.host } : {}),
  });
  socket.on('session', (ticket: Buffer) => sessions.set(target.origin, ticket));
  return socket.setNoDelay(true);
}

/** An error of the network has a system call, one of TLS has none; a handshake that was reset has none either. */
function connectFailure(error: NodeJS.ErrnoException): { kind: FailureKind; detail: string } {
  const network = error.code === 'ECONNRESET' || (error.syscall !== undefined && error.code !== 'EPROTO');
  return { kind: network ? 'connect' : 'tls', detail: errorDetail(error) };
}

const MAX_DETAIL_LENGTH = 300;

/** One line about an error, with its code. */
export function errorDetail(error: Error & { readonly code?: string | undefined }): string {
  const { code, message } = error;
  const text = code === undefined || message.includes(code) ? message : `${code}: ${message}`;
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL_LENGTH);
}
