import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../base/clock.ts';
import type { ProxyAddress } from '../../base/config/values.ts';
import { reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { backoff } from '../../base/retry.ts';
import { world } from '../../base/world.ts';
import type { NameLookup } from '../targets/target.ts';

/** The time in which the proxy must accept a connection. The receiver's time begins afterwards. */
const DIAL_LIMIT_MS = 500;
const BACKOFF = { maxMs: 10_000, jitter: true } as const;
const MAX_REFUSED_ORIGINS = 10_000;
/** An address for documents (RFC 5737). */
const NOBODYS = { host: '192.0.2.1', port: 443 } as const;
/** tinyproxy answers 401 to wrong credentials. */
const CREDENTIALS_REFUSED: readonly number[] = [401, 407];
/** The words of proxies if only the receiver can't be reached: squid, tinyproxy, and any proxy that follows RFC 9209. */
const SQUID_COULD_NOT_CONNECT = /^ERR_CONNECT_FAIL\b/;
const TINYPROXY_COULD_NOT_CONNECT = 'Unable to connect';
const RECEIVER_AT_FAULT =
  /\berror=(connection_(refused|timeout|terminated)|destination_(unavailable|ip_unroutable))\b/;

/** The proxy has failed, so an attempt says nothing about its receiver. */
export class ProxyError extends Error {
  /** True if the proxy works and refuses this receiver. Others may be reachable. */
  readonly isRefusal: boolean;
  constructor(message: string, { isRefusal = false, cause }: ErrorOptions & { isRefusal?: boolean } = {}) {
    super(message, { cause });
    this.isRefusal = isRefusal;
  }
}

interface Wait {
  untilMs: number;
  readonly waits: Iterator<number, never>;
}

interface EgressProxyOptions extends ProxyAddress {
  readonly names: NameLookup;
  readonly steady: Clock;
  readonly log: Log;
}

/**
 * The operator's proxy, through which receivers are reached by CONNECT. After a failure of the proxy nothing is sent for a
 * time that grows, to any receiver, or only to the one that it refuses.
 */
export class EgressProxy {
  readonly #options: EgressProxyOptions;
  /** `host:port`, without credentials. */
  readonly name: string;
  #wait: Wait | undefined;
  readonly #waitOf = new LRUCache<string, Wait>({ max: MAX_REFUSED_ORIGINS });

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    this.name = authorityOf(options);
  }

  /** Opens a connection to the proxy. Rejects with a `ProxyError`. */
  async dial(): Promise<Socket> {
    const { host, port, names } = this.#options;
    const found = await names.find(host);
    if (!found.ok) throw this.#failure(found.detail);
    const addresses = found.addresses.map((address) => ({ address, family: isIP(address) }));
    const socket = connect({
      host,
      port,
      noDelay: true,
      lookup: (_name, _how, done) => done(null, addresses),
    });
    socket.on('error', () => undefined); // reported below, later by the request or TLS
    try {
      await once(socket, 'connect', { signal: world.timeoutSignal(DIAL_LIMIT_MS) });
    } catch (error) {
      socket.destroy();
      const isLate = error instanceof Error && error.name === 'AbortError';
      throw this.#failure(isLate ? `no connection within ${DIAL_LIMIT_MS} ms` : reasonOf(error), error);
    }
    return socket;
  }

  /**
   * Opens a tunnel on a connection to the proxy. Rejects with a `ProxyError`, with the error of a system call if the proxy
   * can't connect to the receiver, or with an `AbortError`.
   */
  async tunnel(dialed: Socket, to: { readonly host: string; readonly port: number }, signal: AbortSignal) {
    const { authorization } = this.#options;
    const authority = authorityOf(to);
    const headers = {
      host: authority,
      ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
    };
    const asked = request({
      method: 'CONNECT',
      path: authority,
      headers,
      signal,
      createConnection: () => dialed,
    });
    let answer: IncomingMessage;
    try {
      [answer] = (await once(asked.end(), 'connect')) as [IncomingMessage];
    } catch (error) {
      dialed.destroy();
      if (signal.aborted) throw error;
      throw this.#failure(`no answer to CONNECT: ${reasonOf(error)}`, error);
    }
    const { statusCode = 0, statusMessage = '' } = answer;
    if (statusCode >= 200 && statusCode < 300) return dialed;
    dialed.destroy();
    const said = `${statusCode} ${statusMessage}`;
    if (isOfReceiver(answer))
      throw Object.assign(new Error(`the proxy could not connect: ${said}`), { syscall: 'connect' });
    throw this.#failure(
      `it answered ${said} to CONNECT`,
      undefined,
      !CREDENTIALS_REFUSED.includes(statusCode),
    );
  }

  /** Rejects with a `ProxyError` if the proxy accepts no connection any more. */
  async assertReachable(): Promise<void> {
    (await this.dial()).destroy();
  }

  /**
   * Asks for a tunnel to an address that nobody has, to which proxies answer about the credentials. Rejects with a
   * `ProxyError` unless the proxy can be used.
   */
  async check(): Promise<void> {
    try {
      (await this.tunnel(await this.dial(), NOBODYS, world.timeoutSignal(DIAL_LIMIT_MS))).destroy();
    } catch (error) {
      if (error instanceof ProxyError && !error.isRefusal) throw error;
    }
  }

  /** How long nothing may be sent to this receiver. */
  waitMs(origin: string): number {
    const untilMs = Math.max(this.#wait?.untilMs ?? 0, this.#waitOf.get(origin)?.untilMs ?? 0);
    return Math.max(0, untilMs - this.#options.steady.now());
  }

  /** Notes a failure. Attempts that were under way with the one that failed first do not prolong the wait. */
  failed({ message, isRefusal }: ProxyError, origin: string): void {
    const { log, steady } = this.#options;
    const known = isRefusal ? this.#waitOf.get(origin) : this.#wait;
    const wait = known ?? { untilMs: 0, waits: backoff(BACKOFF) };
    if (isRefusal) this.#waitOf.set(origin, wait);
    else this.#wait = wait;
    if (wait.untilMs <= steady.now()) wait.untilMs = steady.now() + wait.waits.next().value;
    const fields = { proxy: this.name, ...(isRefusal ? { receiver: origin } : {}), reason: message };
    if (known === undefined)
      log.warn(fields, 'webhooks wait: the proxy fails, so nothing counts as an attempt');
  }

  /** Notes that the proxy has opened a tunnel to this receiver. */
  worked(origin: string): void {
    const { log } = this.#options;
    const wasRefused = this.#waitOf.delete(origin);
    if (this.#wait === undefined && !wasRefused) return;
    this.#wait = undefined;
    log.info({ proxy: this.name, receiver: origin }, 'webhooks continue: the proxy works again');
  }

  #failure(reason: string, cause?: unknown, isRefusal = false): ProxyError {
    return new ProxyError(`the proxy ${this.name} fails: ${reason}`, { cause, isRefusal });
  }
}

/** Says if a refusal is about the receiver. 502 and 504 mean that by the definition of HTTP. */
function isOfReceiver({ statusCode, statusMessage, headers }: IncomingMessage): boolean {
  if (statusCode === 502 || statusCode === 504 || statusMessage === TINYPROXY_COULD_NOT_CONNECT) return true;
  const { 'x-squid-error': squid = '', 'proxy-status': status = '' } = headers;
  return SQUID_COULD_NOT_CONNECT.test(String(squid)) || RECEIVER_AT_FAULT.test(String(status));
}

function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
