import { Duplex } from 'node:stream';
import type { Owner, Timeline, Timer } from '../core/timeline.ts';
import { owners } from '../core/timeline.ts';

export interface ReceivedRequest {
  /** The process that sent it. */
  readonly from: string;
  readonly sentAtMs: number;
  readonly atMs: number;
  readonly host: string;
  readonly address: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The reaction of a receiver to a request. */
export type Reply =
  | {
      readonly kind: 'answer';
      readonly afterMs: number;
      readonly text: string;
      readonly thenClose: boolean;
      /** Called when the sender gets the answer. */
      readonly onHeard?: () => void;
    }
  /** The connection is cut after a part of the answer. */
  | { readonly kind: 'cut'; readonly afterMs: number; readonly text: string }
  | { readonly kind: 'hang' };

export interface Internet {
  /** Returns the current addresses of a name; `undefined` for no answer. Throws as a resolver does. */
  addresses(name: string): readonly string[] | undefined;
  /** Says if something listens there for this name. */
  accepts(host: string, address: string): 'yes' | 'refused' | 'silent' | 'other certificate';
  /** Returns how long a handshake that begins now takes, without the way. */
  handshakeMs(host: string): number;
  receive(request: ReceivedRequest): Reply;
  latencyMs(): number;
}

const IDLE_MS = 3_500;

/** Replaces `network`. */
export function simulatedNetwork(timeline: Timeline, internet: Internet) {
  return {
    createSecureContext: () => ({}),
    connect: (options: { host: string; port: number; servername?: string }) =>
      new SimulatedSocket(timeline, internet, options),
    resolver() {
      const cancelled = Promise.withResolvers<never>();
      cancelled.promise.catch(() => undefined);
      const resolve = async (name: string, family: 4 | 6): Promise<string[]> => {
        const found = (async () => {
          await timeline.pause(internet.latencyMs());
          const addresses = internet.addresses(name);
          if (addresses === undefined) return new Promise<never>(() => undefined);
          const own = addresses.filter((address) => address.includes(':') === (family === 6));
          if (own.length === 0)
            throw Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' });
          return own;
        })();
        return Promise.race([found, cancelled.promise]);
      };
      return {
        resolve4: (name: string) => resolve(name, 4),
        resolve6: (name: string) => resolve(name, 6),
        cancel: () => cancelled.reject(Object.assign(new Error('queryA ECANCELLED'), { code: 'ECANCELLED' })),
        setServers: () => undefined,
      };
    },
  };
}

/** A TLS connection to a receiver, seen from the process. */
class SimulatedSocket extends Duplex {
  readonly encrypted = true;
  readonly authorized = true;
  readonly alpnProtocol = 'http/1.1';
  bytesRead = 0;
  readonly remoteAddress: string;
  readonly #timeline: Timeline;
  readonly #internet: Internet;
  readonly #host: string;
  readonly #owner: Owner | undefined = owners.getStore();
  #waiting = '';
  /** Ends the connection at the receiver, and at this side, when it has been idle for too long. */
  #idle: Timer | undefined;
  #ownIdle: Timer | undefined;

  constructor(timeline: Timeline, internet: Internet, options: { host: string; servername?: string }) {
    super();
    this.#timeline = timeline;
    this.#internet = internet;
    this.remoteAddress = options.host;
    this.#host = options.servername ?? options.host;
    this.#later(internet.latencyMs(), () => this.#connected());
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(idleMs: number): this {
    this.#timeline.clear(this.#ownIdle);
    if (idleMs > 0) this.#ownIdle = this.#timeline.setFor(this.#owner, idleMs, () => this.emit('timeout'));
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#waiting += chunk.toString('utf8');
    this.#timeline.clear(this.#idle);
    const request = this.#complete();
    if (request !== undefined) {
      const { headers, path, body } = request;
      const { remoteAddress: address } = this;
      const host = this.#host;
      const from = this.#owner?.name ?? '';
      const sent = { from, sentAtMs: this.#timeline.nowMs, host, address, headers, path, body };
      // It is on its way, and arrives even if its sender ends.
      this.#timeline.setFor(undefined, this.#internet.latencyMs(), () => this.#arrived(sent));
    }
    done();
  }

  override _final(done: () => void): void {
    done();
  }

  #connected(): void {
    const how = this.#internet.accepts(this.#host, this.remoteAddress);
    if (how === 'silent') return;
    if (how === 'refused') {
      const error = { code: 'ECONNREFUSED', syscall: 'connect' };
      this.destroy(Object.assign(new Error(`connect ECONNREFUSED ${this.remoteAddress}:443`), error));
      return;
    }
    this.emit('connect');
    const handshakeMs = this.#internet.handshakeMs(this.#host);
    this.#later(handshakeMs + this.#internet.latencyMs(), () => {
      if (how === 'yes') this.emit('secureConnect');
      else
        this.destroy(
          Object.assign(new Error('Hostname/IP does not match'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
        );
    });
  }

  #complete(): Pick<ReceivedRequest, 'path' | 'headers' | 'body'> | undefined {
    const end = this.#waiting.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [first = '', ...lines] = this.#waiting.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const rest = Buffer.from(this.#waiting.slice(end + 4));
    const length = Number(headers['content-length'] ?? 0);
    if (rest.length < length) return undefined;
    this.#waiting = rest.subarray(length).toString('utf8');
    return { headers, path: first.split(' ')[1] ?? '', body: rest.subarray(0, length).toString('utf8') };
  }

  #arrived(sent: Omit<ReceivedRequest, 'atMs'>): void {
    this.#timeline.active();
    const reply = this.#internet.receive({ ...sent, atMs: this.#timeline.nowMs });
    if (reply.kind === 'hang') return;
    this.#later(reply.afterMs + this.#internet.latencyMs(), () => {
      const bytes = Buffer.from(reply.text);
      this.bytesRead += bytes.length;
      this.push(bytes);
      if (reply.kind === 'answer') reply.onHeard?.();
      if (reply.kind === 'cut' || reply.thenClose) this.push(null);
      else this.#idle = this.#timeline.setFor(this.#owner, IDLE_MS, () => this.destroy());
    });
  }

  /** Receives something from the other side, unless the process has closed the connection or ended. */
  #later(delayMs: number, run: () => void): void {
    this.#timeline.setFor(this.#owner, delayMs, () => {
      this.#timeline.active();
      if (!this.destroyed) run();
    });
  }
}
