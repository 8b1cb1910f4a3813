import { isIP, type Socket } from 'node:net';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { LRUCache } from 'lru-cache';
import { steadyClock } from '../../base/clock.ts';
import type { Address } from '../../base/config/values.ts';
import { world } from '../../base/world.ts';
import type { FailureKind } from '../queue/delivery.ts';
import { network } from '../targets/network.ts';
import type { Target } from '../targets/target.ts';
import { type EgressProxy, ProxyError } from './egress-proxy.ts';

const MAX_ADDRESSES = 16;
/** Within this time the connection to the last address is started, whatever the others do. */
const ALL_STARTED_WITHIN_MS = 250;
const MAX_HEAD_START_MS = 100;
/** New connections in one turn of the event loop. A handshake takes milliseconds, in which no answer is read. */
const STARTS_IN_A_TURN = 8;

/** Lets a few connections start in each turn of the event loop, in the order of the calls. */
export class StartGate {
  readonly #waiting: (() => void)[] = [];
  #left = STARTS_IN_A_TURN;
  #isRefilling = false;

  /** Resolves when one more may start. The time of its attempt does not begin before that. */
  async pass(): Promise<void> {
    this.#refillNextTurn();
    if (this.#left > 0) this.#left--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #refillNextTurn(): void {
    if (this.#isRefilling) return;
    this.#isRefilling = true;
    world.setImmediate(() => {
      this.#isRefilling = false;
      const next = this.#waiting.splice(0, STARTS_IN_A_TURN);
      this.#left = STARTS_IN_A_TURN - next.length;
      for (const start of next) start();
      if (this.#waiting.length > 0 || next.length > 0) this.#refillNextTurn();
    });
  }
}

interface ConnectOptions {
  readonly target: Target;
  /** Judged addresses, at least one. The first 16 are tried. */
  readonly addresses: readonly string[];
  readonly secureContext: SecureContext;
  /** TLS sessions by origin. Resuming one costs the receiver a fraction of a handshake. */
  readonly sessions: LRUCache<string, Buffer>;
  /** The proxy to connect through; `undefined` to connect directly. */
  readonly via?: Via | undefined;
  readonly signal: AbortSignal;
  /** Called when an address accepts the connection, and when it completes the handshake. */
  readonly onStep: () => void;
}

export interface Via {
  readonly proxy: EgressProxy;
  /** Hands out a connection to the proxy that is open already, once. */
  readonly takeDialed: () => Socket | undefined;
}

export type Connected =
  | {
      readonly ok: true;
      readonly socket: TLSSocket;
      readonly address: string;
      /** The time until the address accepted the connection: one round trip of the network. */
      readonly roundTripMs: number;
    }
  | { readonly ok: false; readonly kind: FailureKind; readonly detail: string };

/**
 * Opens a TLS connection for the target's name to the address that completes its handshake first. The next address is
 * tried when the one before has failed or has had its head start. If all fail, the first failure is returned; the promise
 * rejects with it if it is a `ProxyError`. When the signal aborts, everything is closed, and the promise stays pending.
 */
export function connectToAny(options: ConnectOptions): Promise<Connected> {
  const { target, via, signal, onStep } = options;
  const waiting = options.addresses.slice(0, MAX_ADDRESSES);
  const headStartMs = Math.min(MAX_HEAD_START_MS, ALL_STARTED_WITHIN_MS / waiting.length);
  const open = new Set<TLSSocket>();
  const ended = new AbortController();
  let underWay = 0;
  let firstError: Error | undefined;
  let headStart: NodeJS.Timeout | undefined;
  return new Promise((resolve, reject) => {
    const closeAll = (): void => {
      world.clearTimeout(headStart);
      waiting.length = 0;
      ended.abort();
      for (const socket of open) socket.destroy();
    };
    const failed = (error: Error): void => {
      if (ended.signal.aborted) return;
      underWay--;
      firstError ??= error;
      if (waiting.length > 0) startNext();
      else if (underWay > 0) return;
      else if (firstError instanceof ProxyError) reject(firstError);
      else resolve({ ok: false, ...connectFailure(firstError) });
    };
    const startNext = (): void => {
      world.clearTimeout(headStart);
      const address = waiting.shift();
      if (address === undefined) return;
      if (waiting.length > 0) headStart = world.setTimeout(startNext, headStartMs);
      underWay++;
      const startedAtMs = steadyClock.now();
      let roundTripMs = 0;
      const accepted = (): void => {
        roundTripMs = steadyClock.now() - startedAtMs;
        onStep();
      };
      const shakeHands = (tunnel?: Socket): void => {
        const socket = openSocket(address, options, tunnel);
        open.add(socket);
        if (tunnel === undefined) socket.once('connect', accepted);
        socket.once('secureConnect', () => {
          onStep();
          open.delete(socket);
          signal.removeEventListener('abort', closeAll);
          closeAll();
          resolve({ ok: true, socket, address, roundTripMs });
        });
        // This listener stays, because an error without a listener would end the process. The exchange reports later errors.
        socket.on('error', (error) => {
          if (open.delete(socket)) failed(error);
        });
      };
      if (via === undefined) shakeHands();
      else
        openTunnel(via, { host: address, port: target.port }, ended.signal).then((tunnel) => {
          accepted();
          shakeHands(tunnel);
        }, failed);
    };
    signal.addEventListener('abort', closeAll, { once: true });
    startNext();
  });
}

async function openTunnel(via: Via, to: Address, ended: AbortSignal): Promise<Socket> {
  const dialed = via.takeDialed() ?? (await via.proxy.dial());
  const tunnel = await via.proxy.tunnel(dialed, to, ended);
  if (ended.aborted) tunnel.destroy();
  ended.throwIfAborted();
  return tunnel;
}

function openSocket(address: string, options: ConnectOptions, tunnel: Socket | undefined): TLSSocket {
  const { target, secureContext, sessions } = options;
  const session = sessions.get(target.origin);
  const socket = network.connect({
    ...(session === undefined ? {} : { session }),
    ...(tunnel === undefined ? { host: address, port: target.port } : { socket: tunnel }),
    secureContext,
    ALPNProtocols: ['http/1.1'],
    // The certificate must be for this name, or for the address if there is no name.
    ...(isIP(target.host) === 0 ? { servername: target.host } : { host: address }),
  });
  socket.on('session', (ticket: Buffer) => sessions.set(target.origin, ticket));
  return socket.setNoDelay(true);
}

/** Errors of the network name a system call, those of TLS do not. Nor does a reset during the handshake. */
function connectFailure(error: NodeJS.ErrnoException): { kind: FailureKind; detail: string } {
  const network = error.code === 'ECONNRESET' || (error.syscall !== undefined && error.code !== 'EPROTO');
  return { kind: network ? 'connect' : 'tls', detail: errorDetail(error) };
}

const MAX_DETAIL_LENGTH = 300;

/** The meanings of the alerts by which receivers refuse a handshake because of the client's certificate. */
const ALERTS: Readonly<Record<string, string>> = {
  40: 'the receiver refuses the handshake, perhaps because it demands a client certificate', // by TLS 1.2
  42: 'the receiver does not accept the client certificate that was shown',
  48: 'the receiver does not trust the client certificate that was shown',
  116: 'the receiver demands a client certificate, and none was shown', // by TLS 1.3
};

/** Describes an error in one line, with its code. */
export function errorDetail(error: Error & { readonly code?: string | undefined }): string {
  const { code } = error;
  const [, alert = ''] = /\bSSL alert number (\d+)/.exec(error.message) ?? [];
  const message = ALERTS[alert] ?? error.message;
  const text = code === undefined || message.includes(code) ? message : `${code}: ${message}`;
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL_LENGTH);
}
