import { createServer } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import type { Struct } from 'superstruct';
import { FuelError } from '../../base/errors.ts';
import { listen } from '../../base/listen.ts';
import { faultsOf } from '../../domain/events.ts';

const HOST = '127.0.0.1';
const MAX_BODY = '16kb';
const STATUS = { refused: 400, unknown: 404, failed: 500, stopping: 503 } as const;
const INTEGER = /^\d+$/;

/**
 * The requests that control the mock, by method and path. An answer is printed as JSON, a list as one object a line. A
 * route rejects with `REFUSED` or `USAGE` if something is not possible, and with an `AbortError` if the mock stops meanwhile.
 */
export type Routes = Readonly<Record<string, (body: unknown) => Promise<object>>>;

/** Starts the listener that controls the mock, in plain HTTP and on this machine only. */
export async function startControlServer(routes: Routes, port: number) {
  const server = createServer(createApp(routes).callback());
  const address = await listen(server, { host: HOST, port });
  return {
    url: `http://${HOST}:${address.port}`,
    async stop(): Promise<void> {
      server.close();
      await nextTurn(); // lets requests answer whose wait was ended just now
      server.closeAllConnections();
    },
  };
}

function createApp(routes: Routes): Koa {
  const app = new Koa();
  app.use(async (ctx, next) => {
    // Browsers send these headers. A page that the user visits must not be able to control the mock.
    const isFromAPage = ctx.get('origin') !== '' || ctx.get('sec-fetch-site') !== '';
    if (isFromAPage || !Object.hasOwn(routes, `${ctx.method} ${ctx.path}`)) {
      ctx.status = STATUS.unknown;
      ctx.body = { error: `ask with ${Object.keys(routes).join(', ')}; members are a form or JSON` };
    } else {
      await next().catch((error: Error) => {
        const isStopping = error.name === 'AbortError';
        ctx.status = isStopping ? STATUS.stopping : isOfTheRequest(error) ? STATUS.refused : STATUS.failed;
        const problem = isStopping ? 'the mock is stopping, and sends no further webhook' : error.message;
        ctx.body = { error: problem };
      });
    }
    const lines = [ctx.body].flat().map((one) => `${JSON.stringify(one)}\n`);
    ctx.body = lines.join('');
    ctx.type = 'json';
  });
  app.use(koaBody({ text: false, formLimit: MAX_BODY, jsonLimit: MAX_BODY }));
  app.use(async (ctx) => {
    ctx.body = await routes[`${ctx.method} ${ctx.path}`]?.(ctx.request.body);
  });
  return app;
}

/** Makes a route that reads members from its body, where an integer may be text. It rejects with `USAGE` if they do not fit. */
export function reading<T, S>(schema: Struct<T, S>, work: (members: T) => Promise<object>): Routes[string] {
  return async (body) => {
    const members: Record<string, unknown> = { ...(body as object | undefined) };
    for (const name in members) if (INTEGER.test(`${members[name]}`)) members[name] = Number(members[name]);
    const [fault] = faultsOf(schema, members);
    if (fault !== undefined) throw new FuelError('USAGE', fault);
    return await work(members as T);
  };
}

/** True if the fault is the request's, which includes a body that can't be read. */
function isOfTheRequest(error: unknown): boolean {
  if (error instanceof FuelError) return error.code === 'USAGE' || error.code === 'REFUSED';
  return ((error as { status?: number }).status ?? STATUS.failed) < STATUS.failed;
}
