import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import { listen } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';

export interface Readiness {
  readonly ready: boolean;
  /** Each condition of readiness, by name. */
  readonly checks: Readonly<Record<string, boolean>>;
  /** The reason, for each condition that does not hold. */
  readonly reasons?: Readonly<Record<string, string>>;
}

export interface OpsOptions {
  readonly readiness: () => Readiness | Promise<Readiness>;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly log: Log;
  /** Returns the newest signed checkpoint of the log; `undefined` if nothing is sealed yet. */
  readonly checkpoint?: () => Promise<string | undefined>;
  /** The operator's console, which answers all other requests. */
  readonly console?: Koa.Middleware;
}

export interface OpsServer {
  listen(address: { readonly host: string; readonly port: number }): Promise<AddressInfo>;
  stop(): Promise<void>;
}

/** Every HTTP status that the operations listener uses. */
export const OPS_STATUS = {
  ok: 200,
  unchanged: 304,
  malformed: 400,
  refused: 403,
  notFound: 404,
  methodNotAllowed: 405,
  otherHost: 421,
  unavailable: 503,
} as const;

const OPENAPI = new URL('../../../docs/openapi.yaml', import.meta.url);

/**
 * Serves health, readiness, metrics, the API's description and the console by plain HTTP, for the operator's network
 * only.
 */
export function createOpsServer({ readiness, metrics, log, checkpoint, console }: OpsOptions): OpsServer {
  const router = new Router();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', async (ctx) => {
    const state = await readiness();
    ctx.status = state.ready ? OPS_STATUS.ok : OPS_STATUS.unavailable;
    ctx.body = state;
  });
  router.get('/metrics', async (ctx) => {
    ctx.type = metrics.contentType;
    ctx.body = await metrics.text();
  });
  router.get('/checkpoint', async (ctx) => {
    const note = await checkpoint?.();
    ctx.status = note === undefined ? OPS_STATUS.notFound : OPS_STATUS.ok;
    ctx.type = 'text/plain';
    ctx.body = note ?? 'nothing is sealed yet\n';
  });
  router.get('/openapi.yaml', async (ctx) => {
    ctx.type = 'application/yaml';
    ctx.body = await readFile(OPENAPI);
  });
  const app = new Koa();
  app.on('error', (error: unknown) => log.error({ err: error }, 'operations request failed'));
  app.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  app.use(router.routes());
  app.use(router.allowedMethods());
  if (console !== undefined) app.use(console);
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  return {
    listen: (address) => listen(server, address),
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
