import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import Koa from 'koa';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../src/base/config/ip-address.ts';
import { takeTurns } from '../../src/pull/admission.ts';
import type { RefusalCode, RequestState } from '../../src/pull/answers.ts';
import { until } from '../support/waiting.ts';

const MAX_UNDER_WAY = 8;

/** Starts a server whose requests name their key or their address as the path, and end when the test says so. */
async function startKeys({ proven = true, code }: { proven?: boolean; code?: RefusalCode } = {}) {
  const begun: { key: string; end: () => void }[] = [];
  const app = new Koa<RequestState>();
  app.use(async (ctx, next) => {
    const name = ctx.path.slice(1);
    ctx.state.caller = { prefix: name, proven } as NonNullable<RequestState['caller']>;
    ctx.state.address = parseAddress(name);
    ctx.state.requestId = 'request';
    await next();
  });
  app.use(takeTurns());
  app.use((ctx) => {
    ctx.respond = false;
    if (code !== undefined) ctx.state.code = code;
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

test('another key does not wait', async () => {
  const { ask, begun } = await startKeys();
  for (let count = 0; count < MAX_UNDER_WAY + 1; count++) await ask('a');
  await ask('b');
  await until(() => begun.some(({ key }) => key === 'b'));
});

test('requests without a valid secret take the turns of their address, whichever key they name', async () => {
  const { ask, begun } = await startKeys({ proven: false });
  for (let count = 0; count < MAX_UNDER_WAY + 1; count++) await ask('192.0.2.1');
  await ask('192.0.2.2');
  await until(() => begun.length === MAX_UNDER_WAY + 1);
  expect(begun.filter(({ key }) => key === '192.0.2.1')).toHaveLength(MAX_UNDER_WAY);
});

test.each([
  ['a key at its limit', { code: 'RATE_LIMITED' }],
  ['a key from a foreign address', { code: 'IP_NOT_ALLOWED' }],
  ['an address without a key', { proven: false, code: 'INVALID_API_KEY' }],
] as const)(
  'the refusals of %s keep their turns for a tenth of a second, so that they cost little',
  async (_, options) => {
    const { ask, begun } = await startKeys(options);
    for (let count = 0; count < MAX_UNDER_WAY + 1; count++) await ask('192.0.2.1');
    const endedAtMs = performance.now();
    for (const { end } of begun) end();
    await until(() => begun.length === MAX_UNDER_WAY + 1);
    expect(performance.now() - endedAtMs).toBeGreaterThan(99);
  },
);

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
