import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import Koa, { type Context } from 'koa';
import { koaBody } from 'koa-body';

const TOLERANCE_SECONDS = 5 * 60;
const MAX_BODY = '256kb';
const SIGNATURE = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

export interface ReceiverOptions {
  /** The webhook secret, as the operator gave it to you. */
  readonly secret: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /** For tests: this many first requests are answered with 503. */
  readonly failFirst?: number;
  /** Called with each accepted event. */
  readonly onEvent?: (event: WebhookEvent, outcome: 'stored' | 'stored before' | 'test') => void;
}

export interface WebhookEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly api_version: string;
  readonly data: { readonly transaction?: { readonly id: number; readonly [field: string]: unknown } };
}

export interface Receiver {
  readonly server: Server;
  /** The received transactions by id. In your system this is a table. */
  readonly transactions: ReadonlyMap<number, unknown>;
  /** Answers the next `count` requests with 503. */
  failNext(count: number): void;
}

/** Whether the signature is genuine and not too old: over the raw bytes, compared in constant time. */
export function isGenuine(header: string, rawBody: string, secret: string): boolean {
  const [, t, v1] = SIGNATURE.exec(header) ?? [];
  if (t === undefined || v1 === undefined) return false;
  if (Math.abs(Date.now() / 1000 - Number(t)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac('sha256', secret).update(`${t}.${rawBody}`).digest();
  return timingSafeEqual(expected, Buffer.from(v1, 'hex'));
}

/** An HTTPS server that receives webhooks on any path. Answer fast (within 500 ms); work afterwards. */
export function createReceiver({ secret, cert, key, failFirst = 0, onEvent }: ReceiverOptions): Receiver {
  const transactions = new Map<number, unknown>();
  let failuresLeft = failFirst;

  function receive(ctx: Context): void {
    // The body exactly as received: parsed and printed again, it would have another signature.
    const rawBody = typeof ctx.request.body === 'string' ? ctx.request.body : '';
    if (!isGenuine(ctx.get('X-Service-Signature'), rawBody, secret)) {
      ctx.status = 401;
      return;
    }
    if (failuresLeft > 0) {
      failuresLeft -= 1;
      ctx.status = 503;
      return;
    }
    const event = JSON.parse(rawBody) as WebhookEvent;
    ctx.status = 204;
    const { transaction } = event.data;
    // New types may be added: accept and ignore them.
    if (transaction === undefined || !event.type.startsWith('transaction.')) {
      onEvent?.(event, 'test');
      return;
    }
    // The same event may come twice. An upsert by the transaction's id makes that harmless.
    const known = transactions.has(transaction.id);
    transactions.set(transaction.id, transaction);
    onEvent?.(event, known ? 'stored before' : 'stored');
  }

  const app = new Koa();
  app.use(koaBody({ json: false, urlencoded: false, text: true, textTypes: ['*/*'], textLimit: MAX_BODY }));
  app.use(receive);
  return {
    server: createServer({ cert, key }, app.callback()),
    transactions,
    failNext(count) {
      failuresLeft += count;
    },
  };
}

/** Runs the receiver with the settings from the environment: see README.md. */
function main(env: NodeJS.ProcessEnv): void {
  const { WEBHOOK_SECRET: secret, TLS_CERT: cert, TLS_KEY: key, PORT = '8444', FAIL_FIRST = '0' } = env;
  if (secret === undefined || cert === undefined || key === undefined) {
    throw new Error('set WEBHOOK_SECRET, TLS_CERT and TLS_KEY (PEM files)');
  }
  const receiver = createReceiver({
    secret,
    cert: readFileSync(cert, 'utf8'),
    key: readFileSync(key, 'utf8'),
    failFirst: Number(FAIL_FIRST),
    onEvent: ({ type, id, data }, outcome) =>
      process.stdout.write(`${type} ${data.transaction?.id ?? ''} delivery ${id}: ${outcome}\n`),
  });
  receiver.server.listen(Number(PORT), () => process.stdout.write(`listening on port ${PORT}\n`));
}

if (import.meta.main) main(process.env);
