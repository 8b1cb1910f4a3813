import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TurnedAway } from '../../../src/pull/server/connection-gate.ts';
import { ServerConnections } from '../../../src/pull/server/connections.ts';
import { createServer, type ServerOptions } from '../../../src/pull/server/server.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

const MAX_PER_PEER = 64;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Starts a TLS server that answers at once. */
async function startServer(options: Partial<ServerOptions> = {}, host = '127.0.0.1') {
  const turnedAway: TurnedAway[] = [];
  const logLines: Record<string, unknown>[] = [];
  const server = createServer({
    handler: (_request, response) => void response.end('done'),
    pem: await testCertificate(),
    proxies: [],
    log: memoryLog(logLines),
    onTurnedAway: (reason) => turnedAway.push(reason),
    ...options,
  });
  const { port } = await server.listen({ host, port: 0 });
  onTestFinished(() => server.stop(0));
  return { port, turnedAway, logLines, server };
}

/** Resolves at the first of these events. An error does not reject, since a refusal may be a reset. */
function first(socket: Socket, ...events: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    for (const event of events) socket.once(event, () => resolve());
  });
}

/** Opens a silent TCP connection from an address of this machine. Resolves when it is open or refused. */
async function silent(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const host = localAddress.includes(':') ? localAddress : '127.0.0.1';
  const socket = connect({ port, host, localAddress });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await first(socket, 'connect', 'close');
  return socket;
}

/** Returns the answer to a TLS client; empty if its connection is closed before. */
function ask(port: number, opened: Socket[] = [], localAddress = '127.0.0.1'): Promise<string> {
  const tcp = connect({ port, host: '127.0.0.1', localAddress });
  opened.push(tcp);
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false });
  for (const each of [tcp, socket]) each.on('error', () => undefined);
  onTestFinished(() => void tcp.destroy());
  socket.write(REQUEST);
  return new Promise((resolve) => {
    socket.once('data', (chunk) => resolve(String(chunk)));
    tcp.once('close', () => resolve(''));
  });
}

describe('one peer', () => {
  test('has at most 64 connections, whether they speak or not, and takes none from others', async () => {
    const { port, turnedAway } = await startServer();
    const sockets = await Promise.all(Array.from({ length: MAX_PER_PEER }, () => silent(port)));
    const received: Buffer[] = [];
    const tooMany = (await silent(port)).on('data', (chunk) => received.push(chunk));
    tooMany.write(REQUEST);
    if (!tooMany.closed) await first(tooMany, 'close');
    expect(received).toEqual([]);
    expect(turnedAway).toEqual(['peer_limit']);
    expect(await ask(port, [], '127.0.0.2')).toContain('200 OK');
    expect(sockets.filter(({ closed }) => closed)).toEqual([]);
  });

  test('gets back what it closes, before its handshake and after an answer', async () => {
    const { port, turnedAway } = await startServer({ limits: { maxPerPeer: 1 } });
    (await silent(port)).destroy();
    const sockets: Socket[] = [];
    for (let count = 0; count < 3; count++) {
      await until(async () => (await ask(port, sockets)) !== '');
      expect(await ask(port, sockets)).toBe(''); // the one before is still open
      for (const socket of sockets.splice(0)) socket.destroy();
    }
    expect(turnedAway.length).toBeGreaterThanOrEqual(3);
  });

  test('is the same by IPv6, beside those that come by IPv4 to the same socket', async () => {
    const { port, turnedAway } = await startServer({ limits: { maxPerPeer: 2 } }, '::');
    for (let count = 0; count < 2; count++) await silent(port, '::1');
    expect(turnedAway).toEqual([]);
    await silent(port, '::1');
    await until(() => turnedAway.length === 1);
    for (let count = 0; count < 2; count++) await silent(port, '127.0.0.1');
    await silent(port, '127.0.0.1');
    await until(() => turnedAway.length === 2);
    expect(turnedAway).toEqual(['peer_limit', 'peer_limit']);
  });

  test('is a trusted proxy by its address, with its own larger limit', async () => {
    const { port, turnedAway } = await startServer({
      proxies: ['127.0.0.3'],
      limits: { maxPerPeer: 1, maxPerProxy: 3 },
    });
    for (let count = 0; count < 3; count++) await silent(port, '127.0.0.3');
    expect(turnedAway).toEqual([]);
    await silent(port, '127.0.0.3');
    await until(() => turnedAway.length === 1);
    expect(turnedAway).toEqual(['peer_limit']);
  });
});

test('when all connections are taken, the oldest without an accepted key makes room for a new one', async () => {
  const connections = new ServerConnections();
  const { port, turnedAway } = await startServer({ connections, limits: { maxConnections: 2 } });
  const [oldest, next] = [await silent(port, '127.0.1.1'), await silent(port, '127.0.2.1')];
  await until(() => connections.size === 2);
  expect(await ask(port, [], '127.0.3.1')).toContain('200 OK');
  if (!oldest.closed) await first(oldest, 'close');
  expect([next.closed, turnedAway]).toEqual([false, []]);
});

test('a connection on which a key was accepted is not closed for a new one, which is turned away', async () => {
  const connections = new ServerConnections();
  const { port, turnedAway } = await startServer({
    connections,
    handler: (request, response) => {
      connections.prove(request.socket);
      response.end('done');
    },
    limits: { maxConnections: 1 },
  });
  const sockets: Socket[] = [];
  expect(await ask(port, sockets, '127.0.1.1')).toContain('200 OK');
  expect(await ask(port, [], '127.0.2.1')).toBe('');
  expect(turnedAway).toEqual(['total_limit']);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await ask(port, [], '127.0.2.1')) !== '');
});

test('many silent peers of one network leave the others their connections, and one of them that has a key too', async () => {
  const connections = new ServerConnections();
  const { port } = await startServer({ connections, limits: { maxPerPeer: 8, maxPerNetwork: 16 } });
  const peers = Array.from({ length: 32 }, (_, number) => `127.0.1.${number + 1}`);
  for (const peer of peers) await Promise.all(Array.from({ length: 8 }, () => silent(port, peer)));
  await until(() => connections.countOf('127.0.1.0/24') === 16);
  expect(await ask(port, [], '127.0.2.1')).toContain('200 OK');
  expect(await ask(port, [], '127.0.1.200')).toContain('200 OK');
});

test('the handshakes of one peer are spread over time, and beyond two seconds refused; others do not wait', async () => {
  const { port, turnedAway } = await startServer({ limits: { handshakesPerSecond: 0.5 } });
  const all = Promise.all(Array.from({ length: 30 }, () => ask(port)));
  const other = ask(port, [], '127.0.0.2');
  expect(await Promise.race([other, all.then(() => 'later than all others')])).toContain('200 OK');
  const answered = (await all).filter((text) => text.includes('200 OK')).length;
  expect(answered + turnedAway.length).toBe(30);
  expect(answered).toBeGreaterThanOrEqual(16);
  expect(new Set(turnedAway)).toEqual(new Set(['handshake_rate']));
});

test('an address that is not a trusted proxy is counted and logged where only those may connect', async () => {
  const { port, turnedAway, logLines } = await startServer({
    pem: undefined,
    proxies: ['127.0.0.3'],
  });
  await silent(port, '127.0.0.2');
  await until(() => turnedAway.length === 1);
  expect(turnedAway).toEqual(['not_a_proxy']);
  expect(logLines).toMatchObject([
    {
      level: 40,
      msg: 'connections were turned away',
      turned_away: { not_a_proxy: 1 },
      last_peer: '127.0.0.2',
    },
  ]);
});

test('a flood is logged in a line a second, with how many', async () => {
  const { port, turnedAway, logLines, server } = await startServer({ limits: { maxPerPeer: 0 } });
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: 100 }, () => silent(port)));
  await until(() => turnedAway.length === 100);
  await server.stop(0); // logs the rest
  const counts = logLines.map(({ turned_away }) => (turned_away as { peer_limit: number }).peer_limit);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(100);
  expect(logLines.length).toBeLessThanOrEqual(2 + (performance.now() - startedAtMs) / 1_000);
});

test('a connection without a request after its handshake is closed too', async () => {
  const { port } = await startServer({
    limits: { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 },
  });
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => undefined).resume();
  onTestFinished(() => void socket.destroy());
  await first(socket, 'close');
  expect(socket.authorizationError).toBeDefined(); // it was open
});
