import { createServer } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import { define, enums, type Infer, object, optional, type Struct } from 'superstruct';
import { FuelError } from '../../base/errors.ts';
import { listen } from '../../base/listen.ts';
import { faultsOf } from '../../domain/events.ts';
import { id } from '../../domain/values/primitives.ts';
import { KINDS, type Kind } from './mock-webhooks.ts';
import type { SentWebhook } from './send-mock.ts';

const HOST = '127.0.0.1';
const MAX_BODY = '16kb';
const STATUS = { refused: 400, unknown: 404, failed: 500, stopping: 503 } as const;
const USAGE = 'ask with POST /send (kind, url) or POST /void (transaction), as a form or as JSON';

const url: Struct<string, null> = define('url', (value) =>
  /^https?:$/.test(URL.parse(String(value))?.protocol ?? '')
    ? true
    : 'must be the URL of your receiver, with https:// or http://',
);
const SEND = object({ kind: enums(Object.keys(KINDS) as Kind[]), url, transaction: optional(id) });
const VOID = object({ transaction: id });

export interface Controls {
  /**
   * Sends webhooks of a kind. Rejects with `REFUSED` or `USAGE` if that is not possible, and with an `AbortError` if the mock
   * stops meanwhile.
   */
  send(wish: Infer<typeof SEND>): Promise<SentWebhook[]>;
  /** Voids a transaction and resolves once the API no longer shows it. Rejects with `REFUSED` if it does not show it. */
  void(transactionId: number): Promise<void>;
}

/** Starts the listener that controls the mock, in plain HTTP and on this machine only. Its answers are JSON. */
export async function startControlServer(
  controls: Controls,
  port: number,
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const handle = createApp(controls).callback();
  const server = createServer((request, response) => void handle(request, response));
  const address = await listen(server, { host: HOST, port });
  return {
    url: `http://${HOST}:${address.port}`,
    async stop() {
      server.close();
      await nextTurn(); // lets requests answer whose wait was ended just now
      server.closeAllConnections();
    },
  };
}

function createApp(controls: Controls): Koa {
  const posts: Readonly<Record<string, (body: unknown) => Promise<object>>> = {
    '/send': async (body) => ({ sent: await controls.send(read(SEND, body)) }),
    async '/void'(body) {
      const { transaction } = read(VOID, body);
      await controls.void(transaction);
      return { voided: transaction };
    },
  };
  const app = new Koa();
  app.use(async (ctx, next) => {
    // Browsers send these headers. A page that the user visits must not be able to control the mock.
    const isFromAPage = ctx.get('origin') !== '' || ctx.get('sec-fetch-site') !== '';
    if (isFromAPage || ctx.method !== 'POST' || !Object.hasOwn(posts, ctx.path)) {
      ctx.status = STATUS.unknown;
      ctx.body = { error: USAGE };
      return;
    }
    await next().catch((error: Error) => {
      const isStopping = error.name === 'AbortError';
      ctx.status = isStopping ? STATUS.stopping : isOfTheRequest(error) ? STATUS.refused : STATUS.failed;
      ctx.body = { error: isStopping ? 'the mock is stopping, and sends no further webhook' : error.message };
    });
  });
  app.use(koaBody({ text: false, formLimit: MAX_BODY, jsonLimit: MAX_BODY }));
  app.use(async (ctx) => {
    ctx.body = await posts[ctx.path]?.(ctx.request.body);
  });
  return app;
}

/** Throws `USAGE` for a body that does not fit. In a form an id is text. */
function read<T, S>(schema: Struct<T, S>, body: unknown): T {
  const members: Record<string, unknown> = { ...(body as object | undefined) };
  if ('transaction' in members) members.transaction = Number(members.transaction);
  const [fault] = faultsOf(schema, members);
  if (fault !== undefined) throw new FuelError('USAGE', fault);
  return members as T;
}

/** True if the fault is the request's, which includes a body that can't be read. */
function isOfTheRequest(error: unknown): boolean {
  if (error instanceof FuelError) return error.code === 'USAGE' || error.code === 'REFUSED';
  const { status } = error as { status?: number };
  return status !== undefined && status < STATUS.failed;
}
