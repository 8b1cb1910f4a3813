import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import Koa from 'koa';
import { expect, onTestFinished, test } from 'vitest';
import { takeTurns } from '../../src/pull/admission.ts';
import type { RequestState } from '../../src/pull/answers.ts';
import { until } from '../support/waiting.ts';

const MAX_UNDER_WAY = 8;

/** Starts a server whose requests name their key as the path, and end when the test says so. */
async function startKeys({ proven = true } = {}) {
  const begun: { key: string; end: () => void }[] = [];
  const app = new Koa<RequestState>();
  app.use(async (ctx, next) => {
    ctx.state.caller = { prefix: ctx.path.slice(1), proven } as NonNullable<RequestState['caller']>;
    ctx.state.requestId = 'request';
    await next();
  });
  app.use(takeTurns());
  app.use((ctx) => {
    ctx.respond = false;
    begun.push({ key: ctx.path.slice(1), end: () => void ctx.res.end('done') });
  });
  const handle = app.callback();
  let arrived = 0;
  let closed = 0;
  const server = createServer((request, response) => {
    arrived += 1;
    response.once('close', () => {
      closed += 1;
    });
    void handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  /** Sends a request with this key on a connection of its own, and returns when it has arrived. */
  const ask = async (key: string): Promise<Socket> => {
    const expected = arrived + 1;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(`GET /${key} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await until(() => arrived === expected);
    return socket;
  };
  /** Ends these connections, and returns when the server has noticed. */
  const cut = async (sockets: readonly Socket[]): Promise<void> => {
    const expected = closed + sockets.length;
    for (const socket of sockets) socket.destroy();
    await until(() => closed === expected);
  };
  return { ask, cut, begun };
}

test('a key has eight requests under way, and each that ends lets the oldest waiting one begin', async () => {
  const { ask, begun } = await startKeys();
  for (let count = 0; count < MAX_UNDER_WAY + 2; count++) await ask('a');
  expect(begun).toHaveLength(MAX_UNDER_WAY);
  for (let count = 1; count <= 2; count++) {
    begun[count]?.end();
    await until(() => begun.length === MAX_UNDER_WAY + count);
  }
  for (const { end } of begun) end();
  await ask('a');
  await until(() => begun.length === MAX_UNDER_WAY + 3);
});

test('another key does not wait, and neither does a request without a valid secret', async () => {
  const { ask, begun } = await startKeys();
  for (let count = 0; count < MAX_UNDER_WAY + 1; count++) await ask('a');
  await ask('b');
  await until(() => begun.some(({ key }) => key === 'b'));

  const unproven = await startKeys({ proven: false });
  for (let count = 0; count < MAX_UNDER_WAY + 1; count++) await unproven.ask('a');
  await until(() => unproven.begun.length === MAX_UNDER_WAY + 1);
});

test('a request whose connection ends while it waits or is under way gives its place back, and begins no more', async () => {
  const { ask, cut, begun } = await startKeys();
  const sockets: Socket[] = [];
  for (let count = 0; count < MAX_UNDER_WAY + 3; count++) sockets.push(await ask('a'));
  await cut(sockets.slice(MAX_UNDER_WAY, -1));
  expect(begun).toHaveLength(MAX_UNDER_WAY);
  await cut(sockets.slice(0, MAX_UNDER_WAY));
  await until(() => begun.length === MAX_UNDER_WAY + 1); // the last one
  for (let count = 1; count < MAX_UNDER_WAY; count++) await ask('a');
  await until(() => begun.length === 2 * MAX_UNDER_WAY);
});
