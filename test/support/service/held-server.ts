import type { RequestListener, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { ServerConnections } from '../../../src/pull/server/connections.ts';
import { createServer, type ServerOptions } from '../../../src/pull/server/server.ts';
import { until } from '../waiting.ts';
import { memoryLog } from './api.ts';

const PROXIES = ['127.0.0.0/8'];
export const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Starts a server behind a proxy that ends TLS, so that the test sees the bytes that are sent. */
export async function startServer(
  handler: RequestListener,
  limits: ServerOptions['limits'] = {},
  connections = new ServerConnections(),
) {
  const server = createServer({
    handler,
    pem: undefined,
    proxies: PROXIES,
    log: memoryLog([]),
    limits,
    connections,
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.stop(0));
  return { server, port };
}

/** Starts a server whose answers end when the test says so. `begin` writes a first part. */
export async function startHeldServer(begin: (response: ServerResponse, number: number) => void) {
  const responses: ServerResponse[] = [];
  const started = await startServer((_request, response) => begin(response, responses.push(response)));
  return {
    ...started,
    /** Resolves when the handler has been called this many times. */
    arrived: (count = 1) => until(() => responses.length >= count),
    begun: () => responses.length,
    /** Ends the answer with this number, or the only one. */
    release: (number = 1) => void responses[number - 1]?.end('done'),
  };
}

/** Writes the first part of an answer. */
export const beginPart = (response: ServerResponse): void => {
  response.setHeader('Content-Length', '10');
  response.write('half, ');
};
