import type { SecureContext } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import { type TimedResult, withinTime } from '../../base/time/within-time.ts';
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
}

/** Makes one attempt. Never rejects: whatever goes wrong is an outcome. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>;
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
  };
  /** A receiver must not be able to end this process, not even by a fault of the sender. */
  const unforeseen = (error: unknown): TimedResult<AttemptOutcome> => {
    log.error({ err: error }, 'a webhook could not be sent, by a fault of the program: the attempt failed');
    return onTime(failure('fault', error instanceof Error ? errorDetail(error) : String(error)));
  };
  const underWay = new Set<Promise<TimedResult<AttemptOutcome>>>();
  let closed = false;
  return {
    async send(request) {
      const startedAt = world.elapsedMs();
      const attempt = closed ? Promise.resolve(CLOSED) : send(parts, request).catch(unforeseen);
      underWay.add(attempt);
      const { result: outcome, lateMs } = await attempt;
      underWay.delete(attempt);
      const durationMs = Math.round(world.elapsedMs() - startedAt);
      return { outcome, durationMs, lateMs: Math.round(lateMs) };
    },
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

async function send(parts: Parts, request: SendRequest): Promise<TimedResult<AttemptOutcome>> {
  const read = readTarget(request.url, parts.allowPrivate);
  if (!read.ok) return onTime(failure('forbidden', read.reason));
  const { target } = read;
  const found = await parts.names.find(target.host);
  if (!found.ok) return onTime(failure('dns', found.detail));
  const { addresses } = found;
  const forbidden = parts.allowPrivate ? undefined : forbiddenAmong(addresses);
  if (forbidden !== undefined)
    return onTime(failure('forbidden', `${target.host} has the address ${forbidden}`));
  if (!parts.kept.has(target.origin)) await parts.gate.pass();
  return exchangeWithin(parts, { target, addresses, request });
}

/**
 * On a kept connection; where that was closed before anything was written, on the next kept one, and finally on a new
 * one. All `addresses` are judged.
 */
function exchangeWithin(
  { kept, secureContext }: Parts,
  {
    target,
    addresses,
    request,
  }: { readonly target: Target; readonly addresses: readonly string[]; readonly request: SendRequest },
): Promise<TimedResult<AttemptOutcome>> {
  let exchange: Exchange | undefined;
  let steps = 0;
  const onStep = (): void => void steps++;
  const work = async (signal: AbortSignal): Promise<AttemptOutcome> => {
    for (;;) {
      exchange = undefined;
      const idle = kept.take(target.origin, addresses);
      const connected: Connected =
        idle === undefined
          ? await connectToAny({ target, addresses, secureContext, signal, onStep })
          : { ok: true, socket: idle.socket, address: idle.address };
      if (!connected.ok) return failure(connected.kind, connected.detail);
      const connection = idle ?? receiverConnection(target, connected.address, connected.socket);
      const close = (): void => void connection.socket.destroy();
      signal.addEventListener('abort', close, { once: true });
      exchange = new Exchange(connection);
      const { sent, outcome } = await exchange.run(target.path, request);
      signal.removeEventListener('abort', close);
      if (outcome.ok || outcome.kind === 'status') kept.give(connection);
      else connection.socket.destroy();
      if (sent || idle === undefined || signal.aborted) return outcome;
    }
  };
  return withinTime({
    limitMs: TIME_LIMIT_MS,
    work,
    expired: (lateMs) => timedOut(exchange, Math.round(lateMs)),
    // Changes with each step of the receiver, up to the headers of its answer: what drips is not waited for.
    progress: () => steps + (exchange?.bytesUntilAnswer ?? 0),
  });
}

function timedOut(exchange: Exchange | undefined, lateMs: number): AttemptOutcome {
  const answer = exchange?.answer() ?? null;
  const uncounted =
    lateMs < TIME_LIMIT_MS / 10 ? '' : `, besides ${lateMs} ms that this process was late itself`;
  const unanswered = answer === null ? 'no answer' : 'no complete answer';
  const reached = exchange === undefined ? 'no connection' : unanswered;
  return failure('timeout', `${reached} within ${TIME_LIMIT_MS} ms${uncounted}`, answer);
}

function onTime(outcome: AttemptOutcome): TimedResult<AttemptOutcome> {
  return { result: outcome, lateMs: 0 };
}

function failure(kind: FailureKind, detail: string, answer: ReceiverAnswer | null = null): AttemptOutcome {
  return { ok: false, kind, detail, answer };
}

const CLOSED = onTime(failure('connect', 'the sender is closed'));
