import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import { FuelError } from '../../base/errors.ts';
import { listen } from '../../base/listen.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { KINDS, type Kind } from './mock-webhooks.ts';
import type { SentWebhook } from './send-mock.ts';

const HOST = '127.0.0.1';
/** Sent by browsers: a page that the user visits must not be able to ask for anything. */
const HEADERS_OF_A_PAGE = ['origin', 'sec-fetch-site'];
const MAX_BODY = '16kb';
const STATUS = { refused: 400, unknown: 404, failed: 500 } as const;
const USAGE = 'ask with POST /send (kind, url) or POST /void (transaction), as a form or as JSON';

export interface Controls {
  /** Sends webhooks of a kind. Rejects with `REFUSED` or `USAGE` where that is not possible. */
  send(wish: { kind: Kind; url: string; transactionId: number | undefined }): Promise<SentWebhook[]>;
  /** Voids a transaction and resolves once the API does not show it any more. Rejects with `REFUSED`. */
  void(transactionId: number): Promise<void>;
}

export interface ControlServer {
  readonly url: string;
  stop(): void;
}

/** What asks the mock for webhooks and voids, in plain HTTP on this machine alone. Answers are JSON. */
export async function startControlServer(
  controls: Controls,
  port: number,
  log: Log = silentLog,
): Promise<ControlServer> {
  const handle = createApp(controls, log).callback();
  const server = createServer((request, response) => void handle(request, response));
  const address = await listen(server, { host: HOST, port });
  return {
    url: `http://${HOST}:${address.port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function createApp(controls: Controls, log: Log): Koa {
  const router = new Router();
  router.post('/send', async (ctx) => {
    const { kind, url, transaction } = membersOf(ctx.request.body, ['kind', 'url', 'transaction']);
    const wish = { kind: readKind(kind), url: readUrl(url), transactionId: readId(transaction) };
    ctx.body = { sent: await controls.send(wish) };
  });
  router.post('/void', async (ctx) => {
    const transactionId = readId(membersOf(ctx.request.body, ['transaction']).transaction);
    if (transactionId === undefined) throw new FuelError('USAGE', 'transaction: missing, the id to void');
    await controls.void(transactionId);
    ctx.body = { voided: transactionId };
  });
  const app = new Koa();
  app.use(async (ctx, next) => {
    const isFromAPage = HEADERS_OF_A_PAGE.some((name) => ctx.req.headers[name] !== undefined);
    try {
      if (!isFromAPage) await next();
      if (ctx.body !== undefined) return;
      ctx.status = STATUS.unknown;
      ctx.body = { error: USAGE };
    } catch (error) {
      const { status, message } = refusalOf(error);
      if (status === STATUS.failed) log.error({ err: error }, 'the mock failed');
      ctx.status = status;
      ctx.body = { error: message };
    }
  });
  app.use(koaBody({ text: false, formLimit: MAX_BODY, jsonLimit: MAX_BODY }));
  app.use(router.routes());
  return app;
}

/** Of a form or a JSON object. Throws `USAGE` for a member that is not among the names, or is given twice. */
function membersOf<Name extends string>(
  body: unknown,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const members: Partial<Record<string, string>> = {};
  for (const [name, value] of Object.entries(body ?? {})) {
    const isKnown = (names as readonly string[]).includes(name);
    if (!isKnown || !['string', 'number'].includes(typeof value)) {
      const known = names.join(', ');
      throw new FuelError('USAGE', `${name}: an unknown or repeated member; there are ${known}`);
    }
    members[name] = String(value);
  }
  return members;
}

function readKind(text: string | undefined): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => name === text);
  if (kind === undefined)
    throw new FuelError('USAGE', `kind: must be one of ${Object.keys(KINDS).join(', ')}`);
  return kind;
}

function readUrl(text: string | undefined): string {
  const url = text === undefined ? null : URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new FuelError('USAGE', 'url: must be the URL of your receiver, with https:// or http://');
  }
  return url.href;
}

function readId(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new FuelError('USAGE', 'transaction: must be an id');
  return Number(text);
}

function refusalOf(error: unknown): { status: number; message: string } {
  if (error instanceof FuelError && (error.code === 'USAGE' || error.code === 'REFUSED')) {
    return { status: STATUS.refused, message: error.message };
  }
  const { status, message } = error as { status?: unknown; message?: string };
  const isOfTheBody = typeof status === 'number' && status < STATUS.failed;
  return { status: isOfTheBody ? STATUS.refused : STATUS.failed, message: message ?? String(error) };
}
