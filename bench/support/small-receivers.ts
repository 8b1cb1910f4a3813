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
  /** The number of waiting requests beyond which it answers 503 and asks for a second. */
  readonly queue?: number;
  /** The deliveries a second that it can take; unlimited if missing. */
  readonly perSecond?: number;
}

/** The results of one receiver. */
export interface Taken {
  requests: number;
  readonly accepted: Set<string>;
  firstAtMs: number;
  lastAtMs: number;
  /** The largest number under way at once. */
  most: number;
}

export interface RunningReceiver {
  readonly url: string;
  readonly taken: Taken;
  stop(): void;
}

const ID = /^\{"id":"([0-9a-f-]{36})"/;

export async function startSmallReceiver(
  plan: SmallReceiver,
  files: { readonly caFile: string; readonly keyFile: string },
): Promise<RunningReceiver> {
  const pem = { cert: readFileSync(files.caFile), key: readFileSync(files.keyFile) };
  const taken: Taken = { requests: 0, accepted: new Set(), firstAtMs: 0, lastAtMs: 0, most: 0 };
  const work = inTurn(plan.workers);
  const handshakes = inTurn(1);
  const context = createSecureContext(pem);
  const server = createServer({
    ...pem,
    ...(plan.handshakeMs !== undefined && {
      SNICallback: (_name: string, done: (error: null, made: SecureContext) => void) =>
        void handshakes(plan.handshakeMs ?? 0).then(() => done(null, context)),
    }),
  });
  let [underWay, window] = [0, { sinceMs: Number.NEGATIVE_INFINITY, count: 0 }];
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const nowMs = performance.now();
    if (taken.requests++ === 0) taken.firstAtMs = nowMs;
    underWay += 1;
    taken.most = Math.max(taken.most, underWay);
    const body = Buffer.concat(await request.toArray()).toString();
    const { size = Infinity, windowMs = 0 } = plan.perWindow ?? {};
    if (nowMs - window.sinceMs >= windowMs) window = { sinceMs: nowMs, count: 0 };
    const isRefused = window.count >= size;
    const isFull = underWay - plan.workers > (plan.queue ?? Infinity);
    if (!isRefused && !isFull) {
      window.count += 1;
      await work(plan.workMs);
    }
    underWay -= 1;
    if (plan.closes) response.shouldKeepAlive = false;
    const waitMs = isRefused ? window.sinceMs + windowMs - nowMs : 1_000;
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
function inTurn(workers: number): (ms: number) => Promise<void> {
  const free = Array.from({ length: workers }, () => 0);
  return async (ms) => {
    const worker = free.indexOf(Math.min(...free));
    const startMs = Math.max(performance.now(), free[worker] ?? 0);
    free[worker] = startMs + ms;
    await sleep(startMs + ms - performance.now());
  };
}
