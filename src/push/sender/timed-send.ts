import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { LRUCache } from 'lru-cache';
import { steadyClock } from '../../base/clock.ts';
import { withinTime } from '../../base/time/within-time.ts';
import type { AttemptOutcome, FailureKind, ReceiverAnswer } from '../queue/delivery.ts';
import type { Target } from '../targets/target.ts';
import { type Connected, connectToAny } from './connect.ts';
import { type Connections, receiverConnection } from './connections.ts';
import type { EgressProxy } from './egress-proxy.ts';
import { Exchange } from './exchange.ts';

/** The time from the start of the connection or of CONNECT, or the write on a kept one, to the last byte. If this process is late, its delay is added. */
const TIME_LIMIT_MS = 500;
/** Failures that the end of the proxy looks like. */
const LIKE_END_OF_PROXY: readonly FailureKind[] = ['connect', 'tls', 'timeout', 'cut'];

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
  /** The judged address that the last connection led to; `null` if none was opened. */
  readonly address: string | null;
  /** True if the outcome says nothing about the receiver: nothing was sent because of `maySend`, or the proxy has failed. */
  readonly isWithheld: boolean;
  /** True if the request was written twice: a kept connection was cut after the first time. */
  readonly isSentAgain: boolean;
}

export type Sent = Omit<SendResult, 'durationMs'>;

/** The parts that all attempts of a sender share. */
export interface ConnectionParts {
  readonly connections: Connections;
  /** Replaced when the certificate for receivers is renewed. */
  secureContext: SecureContext;
  readonly proxy: EgressProxy | undefined;
  /** TLS sessions by origin. */
  readonly sessions: LRUCache<string, Buffer>;
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
export class TimedSend {
  readonly #parts: ConnectionParts;
  readonly #at: AttemptAt;
  /** A connection to the proxy, until a tunnel uses it. */
  #dialed: Socket | undefined;
  #exchange: Exchange | undefined;
  /** Steps of the receiver before the exchange. */
  #steps = 0;
  #connectMs: number | null = null;
  #roundTripMs: number | null = null;
  #sentAtMs: number | null = null;
  /** True from the second try on if the first one wrote the request. */
  #isSentInVain = false;
  #address: string | null = null;
  #isWithheld = false;

  constructor(parts: ConnectionParts, at: AttemptAt, dialed?: Socket) {
    this.#parts = parts;
    this.#at = at;
    this.#dialed = dialed;
  }

  /**
   * A connection that fails must not cost the attempt. So if no connection could be opened, or a kept one ended before a
   * byte of the answer, it is tried once more at once. A receiver that has had the request knows it by its id. Rejects with
   * a `ProxyError` if the proxy has failed, which is not the receiver's failure.
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
    this.#takeDialed()?.destroy();
    if (!outcome.ok && LIKE_END_OF_PROXY.includes(outcome.kind)) await this.#parts.proxy?.assertReachable();
    if (this.#connectMs !== null) this.#parts.proxy?.worked(this.#at.target.origin);
    const answerMs = this.#sentAtMs === null ? null : steadyClock.now() - this.#sentAtMs;
    const isSentAgain = this.#isSentInVain && this.#exchange?.isSent === true;
    const isWithheld = this.#isWithheld;
    const [connectMs, roundTripMs] = [this.#connectMs, this.#roundTripMs];
    const address = this.#address;
    return { outcome, address, lateMs, connectMs, roundTripMs, answerMs, isWithheld, isSentAgain };
  }

  /** Tries once; `undefined` if the request may no longer be sent. A kept connection that was closed before anything was written does not count as a try. */
  async #try(signal: AbortSignal): Promise<Tried | undefined> {
    const { connections, secureContext, sessions, proxy } = this.#parts;
    const { target, addresses } = this.#at;
    const via = proxy && { proxy, takeDialed: () => this.#takeDialed() };
    for (;;) {
      this.#isSentInVain ||= this.#exchange?.isSent === true;
      [this.#exchange, this.#sentAtMs] = [undefined, null];
      [this.#connectMs, this.#roundTripMs] = [null, null];
      const startedAtMs = steadyClock.now();
      const idle = connections.take(target.origin, addresses);
      const onStep = (): void => void this.#steps++;
      const connected: Connected =
        idle === undefined
          ? await connectToAny({ target, addresses, secureContext, sessions, via, signal, onStep })
          : { ok: true, socket: idle.socket, address: idle.address, roundTripMs: 0 };
      if (!connected.ok)
        return { outcome: failure(connected.kind, connected.detail), again: connected.kind === 'connect' };
      const connection = idle ?? receiverConnection(target, connected.address, connected.socket);
      this.#address = connected.address;
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

  #takeDialed(): Socket | undefined {
    const dialed = this.#dialed;
    this.#dialed = undefined;
    return dialed;
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

export function failure(
  kind: FailureKind,
  detail: string,
  answer: ReceiverAnswer | null = null,
): AttemptOutcome {
  return { ok: false, kind, detail, answer };
}

const WITHHELD = failure('fault', 'the request was no longer to be sent');
