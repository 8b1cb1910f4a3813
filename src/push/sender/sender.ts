import type { SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import { withinTime } from '../../base/time/within-time.ts';
import { world } from '../../base/world.ts';
import type { AttemptOutcome, FailureKind, ReceiverAnswer } from '../queue/delivery.ts';
import { type ResolveName, resolveName } from '../targets/resolve-name.ts';
import { forbiddenAmong, type NameLookup, readTarget, type Target } from '../targets/target.ts';
import { type Connected, connectToAny, errorDetail } from './connect.ts';
import { Exchange } from './exchange.ts';
import { createKeptConnections, type KeptConnections } from './kept-connections.ts';
import { createNameLookup } from './name-lookup.ts';
import { receiverConnection } from './receiver-connection.ts';
import { StartGate } from './start-gate.ts';
import { readPem, trustedAuthorities } from './trusted-authorities.ts';

/** From the connection's start, or the write on a kept one, to the last byte, less what waited for this process. */
const TIME_LIMIT_MS = 500;
const MAX_SESSIONS = 10_000;
/** A certificate is judged anew at least this often: resuming a session does not. */
const SESSION_KEPT_MS = 300_000;

export interface SendRequest {
  readonly url: string;
  /** Header names in the form they are sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SendResult {
  readonly outcome: AttemptOutcome;
  /** The whole attempt, name look-up included. */
  readonly durationMs: number;
  /** The part of it in which a step of the receiver waited for this process. */
  readonly lateMs: number;
  /** How long a new connection took to be ready; `null` where a kept one was used, or none was made. */
  readonly connectMs: number | null;
  /** From the request's first byte to the answer's last, or to the end of the attempt; `null` where nothing was sent. */
  readonly answerMs: number | null;
}

/** Makes one attempt. Never rejects: whatever goes wrong is an outcome. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>;
  /** The open connections to an origin, idle or in use. */
  openConnections(origin: string): number;
  close(): Promise<void>;
}

export interface SenderOptions {
  /** Staging only: loopback, private addresses and any port may be called. */
  readonly allowPrivate: boolean;
  /** PEM: certificate authorities that are trusted besides the usual ones. */
  readonly extraCa?: string | undefined;
  /** Times looked-up addresses and idle connections; the monotonic clock unless given. */
  readonly clock?: Clock | undefined;
  /** How names are looked up: by the hosts file and DNS unless given. */
  readonly resolve?: ResolveName | undefined;
  /** Gets faults of the program: an attempt that meets one fails as `fault`. */
  readonly log: Log;
}

interface Parts {
  readonly allowPrivate: boolean;
  readonly names: NameLookup;
  readonly kept: KeptConnections;
  readonly secureContext: SecureContext;
  readonly gate: StartGate;
  readonly sessions: LRUCache<string, Buffer>;
}

/** What an attempt came to, without the time of the name's look-up. */
interface Sent extends Pick<SendResult, 'connectMs' | 'answerMs'> {
  readonly result: AttemptOutcome;
  readonly lateMs: number;
}

/**
 * Sends webhooks over TLS, on connections that are kept while they are used. Each attempt judges every address
 * of its host and connects only to one that was judged. Follows no redirect, keeps no cookie, uses no proxy.
 * `close` waits for attempts under way. Throws `CONFIG_INVALID` when `extraCa` can't be read.
 */
export function createSender(options: SenderOptions): Sender {
  const { allowPrivate, extraCa, clock = { now: world.elapsedMs }, resolve = resolveName, log } = options;
  const parts: Parts = {
    allowPrivate,
    names: createNameLookup({ resolve, clock }),
    kept: createKeptConnections(clock),
    secureContext: trustedAuthorities(extraCa),
    gate: new StartGate(),
    sessions: new LRUCache({ max: MAX_SESSIONS, ttl: SESSION_KEPT_MS, perf: clock }),
  };
  /** A receiver must not be able to end this process, not even by a fault of the sender. */
  const unforeseen = (error: unknown): Sent => {
    log.error({ err: error }, 'a webhook could not be sent, by a fault of the program: the attempt failed');
    return notSent(failure('fault', error instanceof Error ? errorDetail(error) : String(error)));
  };
  const underWay = new Set<Promise<Sent>>();
  let closed = false;
  return {
    async send(request) {
      const startedAt = world.elapsedMs();
      const attempt = closed ? Promise.resolve(CLOSED) : send(parts, request).catch(unforeseen);
      underWay.add(attempt);
      const { result: outcome, lateMs, connectMs, answerMs } = await attempt;
      underWay.delete(attempt);
      const durationMs = Math.round(world.elapsedMs() - startedAt);
      return { outcome, durationMs, lateMs: Math.round(lateMs), connectMs, answerMs };
    },
    openConnections: (origin) => parts.kept.open(origin),
    async close() {
      closed = true;
      parts.kept.close();
      await Promise.all(underWay);
    },
  };
}

/** The sender by the configuration. Throws `CONFIG_INVALID` where `FUEL_WEBHOOK_CA` can't be used. */
export function configuredSender(
  config: Pick<Config, 'FUEL_WEBHOOK_ALLOW_PRIVATE' | 'FUEL_WEBHOOK_CA'>,
  log: Log,
): Sender {
  const { FUEL_WEBHOOK_ALLOW_PRIVATE: allowPrivate, FUEL_WEBHOOK_CA: file } = config;
  return createSender({ allowPrivate, extraCa: file === undefined ? undefined : readPem(file), log });
}

async function send(parts: Parts, request: SendRequest): Promise<Sent> {
  const read = readTarget(request.url, parts.allowPrivate);
  if (!read.ok) return notSent(failure('forbidden', read.reason));
  const { target } = read;
  const found = await parts.names.find(target.host);
  if (!found.ok) return notSent(failure('dns', found.detail));
  const { addresses } = found;
  const forbidden = parts.allowPrivate ? undefined : forbiddenAmong(addresses);
  if (forbidden !== undefined)
    return notSent(failure('forbidden', `${target.host} has the address ${forbidden}`));
  if (!parts.kept.has(target.origin)) await parts.gate.pass();
  return exchangeWithin(parts, { target, addresses, request });
}

/**
 * Sends on a kept connection, or on a new one. All `addresses` are judged. The attempt is not spent on our connection:
 * where no new one could be made, or a kept one ended before a byte of the answer, it is tried once more at once; the
 * receiver knows a request that it has had already by its id. A kept connection that was closed before anything was
 * written is no try at all.
 */
async function exchangeWithin(
  { kept, secureContext, sessions }: Parts,
  {
    target,
    addresses,
    request,
  }: { readonly target: Target; readonly addresses: readonly string[]; readonly request: SendRequest },
): Promise<Sent> {
  let exchange: Exchange | undefined;
  let steps = 0;
  let connectMs: number | null = null;
  let sentAtMs: number | null = null;
  const onStep = (): void => void steps++;
  /** Whether the receiver has had no say in how it ended. */
  const tryOnce = async (
    signal: AbortSignal,
  ): Promise<{ readonly outcome: AttemptOutcome; again: boolean }> => {
    for (;;) {
      [exchange, connectMs, sentAtMs] = [undefined, null, null];
      const startedAtMs = world.elapsedMs();
      const idle = kept.take(target.origin, addresses);
      const connected: Connected =
        idle === undefined
          ? await connectToAny({ target, addresses, secureContext, sessions, signal, onStep })
          : { ok: true, socket: idle.socket, address: idle.address };
      if (!connected.ok)
        return { outcome: failure(connected.kind, connected.detail), again: connected.kind === 'connect' };
      const connection = idle ?? receiverConnection(target, connected.address, connected.socket);
      sentAtMs = world.elapsedMs();
      if (idle === undefined) {
        kept.opened(connection);
        connectMs = sentAtMs - startedAtMs;
      }
      const close = (): void => void connection.socket.destroy();
      signal.addEventListener('abort', close, { once: true });
      const bytesBefore = connection.socket.bytesRead;
      exchange = new Exchange(connection);
      const { sent, outcome } = await exchange.run(target.path, request);
      signal.removeEventListener('abort', close);
      if (outcome.ok || outcome.kind === 'status') kept.give(connection);
      else connection.socket.destroy();
      const isCut = !outcome.ok && outcome.kind === 'cut' && connection.socket.bytesRead === bytesBefore;
      if (sent || idle === undefined) return { outcome, again: isCut && idle !== undefined };
      if (signal.aborted) return { outcome, again: false };
    }
  };
  const timed = await withinTime({
    limitMs: TIME_LIMIT_MS,
    async work(signal) {
      const { outcome, again } = await tryOnce(signal);
      return again && !signal.aborted ? (await tryOnce(signal)).outcome : outcome;
    },
    expired: (lateMs) => timedOut(exchange, Math.round(lateMs)),
    // Changes with each step of the receiver, up to the headers of its answer: what drips is not waited for.
    progress: () => steps + (exchange?.bytesUntilAnswer ?? 0),
  });
  return { ...timed, connectMs, answerMs: sentAtMs === null ? null : world.elapsedMs() - sentAtMs };
}

function timedOut(exchange: Exchange | undefined, lateMs: number): AttemptOutcome {
  const answer = exchange?.answer() ?? null;
  const uncounted =
    lateMs < TIME_LIMIT_MS / 10 ? '' : `, besides ${lateMs} ms that this process was late itself`;
  const unanswered = answer === null ? 'no answer' : 'no complete answer';
  const reached = exchange === undefined ? 'no connection' : unanswered;
  return failure('timeout', `${reached} within ${TIME_LIMIT_MS} ms${uncounted}`, answer);
}

function notSent(outcome: AttemptOutcome): Sent {
  return { result: outcome, lateMs: 0, connectMs: null, answerMs: null };
}

function failure(kind: FailureKind, detail: string, answer: ReceiverAnswer | null = null): AttemptOutcome {
  return { ok: false, kind, detail, answer };
}

const CLOSED = notSent(failure('connect', 'the sender is closed'));
