import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, type SecureContext } from 'node:tls';

/** A receiver that answers in time if it is asked at its own pace. Times are milliseconds. */
export interface SmallReceiver {
  readonly name: string;
  /** How many requests it works on at once. Others wait. */
  readonly workers: number;
  readonly workMs: number;
  /** True if it closes each connection after one answer. */
  readonly closes?: boolean;
  /** The time of a handshake. It makes one after the other. */
  readonly handshakeMs?: number;
  /** The rate limit. Further requests in a window are answered 429, with the seconds until its end. */
  readonly perWindow?: { readonly size: number; readonly windowMs: number };
  /** Another rate limit: a bucket of tokens. Further requests are answered 429, with this time to wait. */
  readonly bucket?: { readonly size: number; readonly perSecond: number; readonly askedSeconds: number };
  /** The most connections that it accepts. It drops others. */
  readonly connections?: number;
  /** The time of a message in one direction. It is simulated for requests and answers, not for handshakes. */
  readonly wayMs?: number;
  /** How often it stands still, and for how long. */
  readonly pause?: { readonly everyMs: number; readonly forMs: number };
  /** It never answers every which request, as if one of so many backends were dead. */
  readonly hangsEvery?: number;
  /** The number of waiting requests beyond which it answers 503 and asks for a second. */
  readonly queue?: number;
  /** The deliveries a second that it can take; unlimited if missing. */
  readonly perSecond?: number;
  /** The least part of `perSecond` that must be used, and the largest part of requests that may be repeated, if not the usual ones. */
  readonly goal?: { readonly used?: number; readonly repeated?: number };
}

/** The results of one receiver. */
export interface Taken {
  requests: number;
  readonly accepted: Set<string>;
  firstAtMs: number;
  lastAtMs: number;
  /** The largest number under way at once. */
  most: number;
  /** When 64 were under way for the first time. */
  wideAtMs: number;
}

export interface RunningReceiver {
  readonly url: string;
  readonly taken: Taken;
  stop(): void;
}

const WIDE = 64;
const ID = /^\{"id":"([0-9a-f-]{36})"/;

export async function startSmallReceiver(
  plan: SmallReceiver,
  files: { readonly caFile: string; readonly keyFile: string },
): Promise<RunningReceiver> {
  const pem = { cert: readFileSync(files.caFile), key: readFileSync(files.keyFile) };
  const taken: Taken = {
    requests: 0,
    accepted: new Set(),
    firstAtMs: 0,
    lastAtMs: 0,
    most: 0,
    wideAtMs: Infinity,
  };
  const work = inTurn(plan.workers, plan.pause);
  const handshakes = inTurn(1);
  const context = createSecureContext(pem);
  const server = createServer({
    ...pem,
    ...(plan.handshakeMs !== undefined && {
      SNICallback: (_name: string, done: (error: null, made: SecureContext) => void) =>
        void handshakes(plan.handshakeMs ?? 0).then(() => done(null, context)),
    }),
  });
  if (plan.connections !== undefined) server.maxConnections = plan.connections;
  let [underWay, window] = [0, { sinceMs: Number.NEGATIVE_INFINITY, count: 0 }];
  const bucket = { tokens: plan.bucket?.size ?? Infinity, atMs: performance.now() };
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const nowMs = performance.now();
    if (taken.requests++ === 0) taken.firstAtMs = nowMs;
    underWay += 1;
    taken.most = Math.max(taken.most, underWay);
    if (underWay === WIDE) taken.wideAtMs = Math.min(taken.wideAtMs, nowMs);
    const body = Buffer.concat(await request.toArray()).toString();
    await sleep(plan.wayMs ?? 0);
    if (taken.requests % (plan.hangsEvery ?? Infinity) === 0) {
      underWay -= 1;
      return;
    }
    const { size = Infinity, windowMs = 0 } = plan.perWindow ?? {};
    if (nowMs - window.sinceMs >= windowMs) window = { sinceMs: nowMs, count: 0 };
    const refilled = bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * (plan.bucket?.perSecond ?? 0);
    [bucket.tokens, bucket.atMs] = [Math.min(plan.bucket?.size ?? Infinity, refilled), nowMs];
    const isEmpty = bucket.tokens < 1;
    const isRefused = isEmpty || window.count >= size;
    const isFull = underWay - plan.workers > (plan.queue ?? Infinity);
    if (!isRefused && !isFull) {
      window.count += 1;
      bucket.tokens -= 1;
      await work(plan.workMs);
    }
    await sleep(plan.wayMs ?? 0);
    underWay -= 1;
    if (plan.closes) response.shouldKeepAlive = false;
    const askedMs = 1_000 * (plan.bucket?.askedSeconds ?? 1);
    const waitMs = isRefused && !isEmpty ? window.sinceMs + windowMs - nowMs : askedMs;
    if (isRefused || isFull) response.setHeader('Retry-After', Math.ceil(waitMs / 1_000));
    else if (!response.closed) {
      taken.accepted.add(ID.exec(body)?.[1] ?? '');
      taken.lastAtMs = performance.now();
    }
    response.writeHead(isRefused ? 429 : isFull ? 503 : 200).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}/fuel-events`,
    taken,
    stop: () => void server.close().closeAllConnections(),
  };
}

/** Makes work of which only some is done at once, while the rest waits. */
function inTurn(workers: number, pause?: SmallReceiver['pause']): (ms: number) => Promise<void> {
  const free = Array.from({ length: workers }, () => 0);
  return async (ms) => {
    const worker = free.indexOf(Math.min(...free));
    const startMs = Math.max(performance.now(), free[worker] ?? 0);
    const endMs = startMs + ms;
    const sincePauseMs = pause === undefined ? Infinity : endMs % pause.everyMs;
    const stoppedMs = sincePauseMs < (pause?.forMs ?? 0) ? (pause?.forMs ?? 0) - sincePauseMs : 0;
    free[worker] = endMs + stoppedMs;
    await sleep(endMs + stoppedMs - performance.now());
  };
}
