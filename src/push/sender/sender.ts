import type { SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import { withinTime } from '../../base/time/within-time.ts';
import type { AttemptOutcome, FailureKind, ReceiverAnswer } from '../queue/delivery.ts';
import { type ResolveName, resolveName } from '../targets/resolve-name.ts';
import { forbiddenAmong, type NameLookup, readTarget, type Target } from '../targets/target.ts';
import { type Connected, connectToAny, errorDetail, StartGate } from './connect.ts';
import { Connections, receiverConnection } from './connections.ts';
import { Exchange } from './exchange.ts';
import { createNameLookup } from './name-lookup.ts';
import { readPem, trustedAuthorities } from './trusted-authorities.ts';

/** The time from the start of the connection, or the write on a kept one, to the last byte. If this process is late, its delay is added. */
const TIME_LIMIT_MS = 500;
const MAX_SESSIONS = 10_000;
/** Certificates are verified at least this often: resuming a session does not verify them. */
const SESSION_KEPT_MS = 300_000;

export interface SendRequest {
  readonly url: string;
  /** Header names as they are sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Asked right before the request is written: if it returns false, nothing is sent. */
  readonly maySend?: () => boolean;
}

export interface SendResult {
  readonly outcome: AttemptOutcome;
  /** The duration of the whole attempt, including the name look-up. */
  readonly durationMs: number;
  /** The time for which steps of the receiver waited for this process. */
  readonly lateMs: number;
  /** How long it took to open a connection; `null` if a kept one was used, or none was opened. */
  readonly connectMs: number | null;
  /** The part of `connectMs` until the receiver accepted the connection, which is one round trip of the network. */
  readonly roundTripMs: number | null;
  /** From the first byte of the request to the last of the answer, or to the end of the attempt; `null` if nothing was sent. */
  readonly answerMs: number | null;
  /** True if nothing was sent because of `maySend`. The outcome then says nothing about the receiver. */
  readonly isWithheld: boolean;
  /** True if the request was written twice: a kept connection was cut after the first time. */
  readonly isSentAgain: boolean;
}

/** Makes one attempt. Never rejects: whatever goes wrong is an outcome. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>;
  /** The number of open connections to an origin, idle or in use. */
  openConnections(origin: string): number;
  close(): Promise<void>;
}

export interface SenderOptions {
  /** For staging only: loopback, private addresses and any port may be called. */
  readonly allowPrivate: boolean;
  /** Certificate authorities (PEM) that are trusted in addition to the usual ones. */
  readonly extraCa?: string | undefined;
  readonly steady?: Clock | undefined;
  /** Resolves names; by the hosts file and DNS unless given. */
  readonly resolve?: ResolveName | undefined;
  /** Receives faults of the program. Their attempts fail as `fault`. */
  readonly log: Log;
}

interface Parts {
  readonly allowPrivate: boolean;
  readonly names: NameLookup;
  readonly connections: Connections;
  readonly secureContext: SecureContext;
  readonly gate: StartGate;
  readonly sessions: LRUCache<string, Buffer>;
}

type Sent = Omit<SendResult, 'durationMs'>;

/**
 * Sends webhooks over TLS, and keeps connections while they are used. Each attempt judges every address of its host, and
 * connects only to an address that it has judged. Redirects, cookies and proxies are ignored. `close` waits for attempts
 * under way. Throws `CONFIG_INVALID` if `extraCa` can't be read.
 */
export function createSender(options: SenderOptions): Sender {
  const { allowPrivate, extraCa, steady = steadyClock, resolve = resolveName, log } = options;
  const parts: Parts = {
    allowPrivate,
    names: createNameLookup({ resolve, steady }),
    connections: new Connections(),
    secureContext: trustedAuthorities(extraCa),
    gate: new StartGate(),
    sessions: new LRUCache({ max: MAX_SESSIONS, ttl: SESSION_KEPT_MS, perf: steady }),
  };
  /** A receiver must not be able to end this process, even if it finds a fault in the sender. */
  const unforeseen = (error: unknown): Sent => {
    log.error({ err: error }, 'a webhook could not be sent, by a fault of the program: the attempt failed');
    return notSent(failure('fault', error instanceof Error ? errorDetail(error) : String(error)));
  };
  const underWay = new Set<Promise<Sent>>();
  let closed = false;
  return {
    async send(request) {
      const startedAt = steadyClock.now();
      const attempt = closed ? Promise.resolve(CLOSED) : send(parts, request).catch(unforeseen);
      underWay.add(attempt);
      const sent = await attempt;
      underWay.delete(attempt);
      const durationMs = Math.round(steadyClock.now() - startedAt);
      return { ...sent, durationMs, lateMs: Math.round(sent.lateMs) };
    },
    openConnections: (origin) => parts.connections.open(origin),
    async close() {
      closed = true;
      parts.connections.close();
      await Promise.all(underWay);
    },
  };
}

/** Creates the sender that the configuration describes. Throws `CONFIG_INVALID` if `FUEL_WEBHOOK_CA` can't be used. */
export function configuredSender(
  config: Pick<Config, 'FUEL_WEBHOOK_ALLOW_PRIVATE' | 'FUEL_WEBHOOK_CA'>,
  log: Log,
): Sender {
  const { FUEL_WEBHOOK_ALLOW_PRIVATE: allowPrivate, FUEL_WEBHOOK_CA: file } = config;
  return createSender({ allowPrivate, extraCa: file === undefined ? undefined : readPem(file), log });
}

async function send(parts: Parts, request: SendRequest): Promise<Sent> {
  const read = readTarget(request.url, parts.allowPrivate);
  if (!read.ok) return notSent(failure('forbidden', `the webhook URL ${read.reason}`));
  const { target } = read;
  const found = await parts.names.find(target.host);
  if (!found.ok) return notSent(failure('dns', found.detail));
  const { addresses } = found;
  const forbidden = parts.allowPrivate ? undefined : forbiddenAmong(addresses);
  if (forbidden !== undefined)
    return notSent(failure('forbidden', `${target.host} has the address ${forbidden}`));
  if (!parts.connections.hasIdle(target.origin)) await parts.gate.pass();
  return new TimedSend(parts, { target, addresses, request }).run();
}

interface AttemptAt {
  readonly target: Target;
  /** All of them are judged. */
  readonly addresses: readonly string[];
  readonly request: SendRequest;
}

/** The outcome of a try, and whether another one may follow: the receiver has had no say in how this one ended. */
interface Tried {
  readonly outcome: AttemptOutcome;
  readonly again: boolean;
}

/** An attempt within the time limit, on a kept connection or a new one. */
class TimedSend {
  readonly #parts: Parts;
  readonly #at: AttemptAt;
  #exchange: Exchange | undefined;
  /** Steps of the receiver before the exchange. */
  #steps = 0;
  #connectMs: number | null = null;
  #roundTripMs: number | null = null;
  #sentAtMs: number | null = null;
  /** True from the second try on if the first one wrote the request. */
  #isSentInVain = false;
  #isWithheld = false;

  constructor(parts: Parts, at: AttemptAt) {
    this.#parts = parts;
    this.#at = at;
  }

  /**
   * A connection that fails must not cost the attempt. So if no connection could be opened, or a kept one ended before a
   * byte of the answer, it is tried once more at once. A receiver that has had the request knows it by its id.
   */
  async run(): Promise<Sent> {
    const { result: outcome, lateMs } = await withinTime({
      limitMs: TIME_LIMIT_MS,
      work: async (signal) => {
        const first = await this.#try(signal);
        const last = first?.again && !signal.aborted ? ((await this.#try(signal)) ?? first) : first;
        this.#isWithheld = last === undefined;
        return last?.outcome ?? WITHHELD;
      },
      expired: (lateMs) => this.#timedOut(Math.round(lateMs)),
      // This changes with each step of the receiver up to the headers of its answer. A body that drips in gets no extra time.
      progress: () => this.#steps + (this.#exchange?.bytesUntilAnswer ?? 0),
    });
    const answerMs = this.#sentAtMs === null ? null : steadyClock.now() - this.#sentAtMs;
    const isSentAgain = this.#isSentInVain && this.#exchange?.isSent === true;
    const isWithheld = this.#isWithheld;
    const [connectMs, roundTripMs] = [this.#connectMs, this.#roundTripMs];
    return { outcome, lateMs, connectMs, roundTripMs, answerMs, isWithheld, isSentAgain };
  }

  /** Tries once; `undefined` if the request may no longer be sent. A kept connection that was closed before anything was written does not count as a try. */
  async #try(signal: AbortSignal): Promise<Tried | undefined> {
    const { connections, secureContext, sessions } = this.#parts;
    const { target, addresses } = this.#at;
    for (;;) {
      this.#isSentInVain ||= this.#exchange?.isSent === true;
      [this.#exchange, this.#sentAtMs] = [undefined, null];
      [this.#connectMs, this.#roundTripMs] = [null, null];
      const startedAtMs = steadyClock.now();
      const idle = connections.take(target.origin, addresses);
      const onStep = (): void => void this.#steps++;
      const connected: Connected =
        idle === undefined
          ? await connectToAny({ target, addresses, secureContext, sessions, signal, onStep })
          : { ok: true, socket: idle.socket, address: idle.address, roundTripMs: 0 };
      if (!connected.ok)
        return { outcome: failure(connected.kind, connected.detail), again: connected.kind === 'connect' };
      const connection = idle ?? receiverConnection(target, connected.address, connected.socket);
      const openedAtMs = steadyClock.now();
      if (idle === undefined) {
        connections.opened(connection);
        this.#connectMs = openedAtMs - startedAtMs;
        this.#roundTripMs = connected.roundTripMs;
      }
      if (this.#at.request.maySend?.() === false) {
        connections.give(connection);
        return undefined;
      }
      this.#sentAtMs = openedAtMs;
      const close = (): void => void connection.socket.destroy();
      signal.addEventListener('abort', close, { once: true });
      const bytesBefore = connection.socket.bytesRead;
      this.#exchange = new Exchange(connection);
      const { sent, outcome } = await this.#exchange.run(target.path, this.#at.request);
      signal.removeEventListener('abort', close);
      if (outcome.ok || outcome.kind === 'status') connections.give(connection);
      else close();
      const isCut = !outcome.ok && outcome.kind === 'cut' && connection.socket.bytesRead === bytesBefore;
      if (sent || idle === undefined) return { outcome, again: isCut && idle !== undefined };
      if (signal.aborted) return { outcome, again: false };
    }
  }

  #timedOut(lateMs: number): AttemptOutcome {
    const answer = this.#exchange?.answer() ?? null;
    const uncounted =
      lateMs < TIME_LIMIT_MS / 10 ? '' : `, besides ${lateMs} ms that this process was late itself`;
    const unanswered = answer === null ? 'no answer' : 'no complete answer';
    const reached = this.#exchange === undefined ? 'no connection' : unanswered;
    return failure('timeout', `${reached} within ${TIME_LIMIT_MS} ms${uncounted}`, answer);
  }
}

function notSent(outcome: AttemptOutcome): Sent {
  const times = { lateMs: 0, connectMs: null, roundTripMs: null, answerMs: null };
  return { outcome, ...times, isWithheld: false, isSentAgain: false };
}

function failure(kind: FailureKind, detail: string, answer: ReceiverAnswer | null = null): AttemptOutcome {
  return { ok: false, kind, detail, answer };
}

const WITHHELD = failure('fault', 'the request was no longer to be sent');
const CLOSED = notSent(failure('connect', 'the sender is closed'));
