import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import type { Registry } from 'prom-client';
import { listen } from '../listen.ts';
import type { Log } from '../log.ts';

export interface Readiness {
  readonly ready: boolean;
  /** Each condition of readiness, by name. */
  readonly checks: Readonly<Record<string, boolean>>;
}

export interface OpsOptions {
  readonly readiness: () => Readiness | Promise<Readiness>;
  readonly registry: Registry;
  readonly log: Log;
}

export interface OpsServer {
  listen(address: { readonly host: string; readonly port: number }): Promise<AddressInfo>;
  stop(): Promise<void>;
}

const OPENAPI = new URL('../../docs/openapi.yaml', import.meta.url);

/** Health, readiness, metrics and the API's description over plain HTTP, for the operator's network only. */
export function createOpsServer({ readiness, registry, log }: OpsOptions): OpsServer {
  const router = new Router();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', async (ctx) => {
    const state = await readiness();
    ctx.status = state.ready ? 200 : 503;
    ctx.body = state;
  });
  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType;
    ctx.body = await registry.metrics();
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
