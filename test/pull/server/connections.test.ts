import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Connections } from '../../../src/pull/server/connections.ts';
import { createServer, type ServerOptions } from '../../../src/pull/server/server.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';
import { openConnection, parseAnswer } from '../../support/service/raw-connection.ts';
import { until } from '../../support/waiting.ts';

const PROXIES = ['127.0.0.0/8'];
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Starts a server behind a proxy that ends TLS, so that the test sees the bytes that are sent. */
async function startServer(
  handler: RequestListener,
  limits: ServerOptions['limits'] = {},
  connections = new Connections(),
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
async function startHeldServer(begin: (response: ServerResponse, number: number) => void) {
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

/** Longer than a test may take: what waits for the end of the grace fails. */
const GRACE_MS = 600_000;

const beginPart = (response: ServerResponse): void => {
  response.setHeader('Content-Length', '10');
  response.write('half, ');
};

describe('a stop', () => {
  test('ends a connection with an answer in progress once that is complete', async () => {
    const { server, port, arrived, release } = await startHeldServer(beginPart);
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST);
    await arrived();
    const stopped = server.stop(GRACE_MS);
    release();
    expect(await received).toMatch(/^HTTP\/1.1 200 OK\r\n.*half, done$/s);
    await stopped;
  });

  test('also answers requests sent after one whose answer is in progress', async () => {
    const { server, port, arrived, release } = await startHeldServer((response, number) => {
      if (number === 1) beginPart(response);
    });
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST + REQUEST);
    await arrived();
    const stopped = server.stop(GRACE_MS);
    release(1);
    await arrived(2);
    release(2);
    const text = await received;
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(text.match(/done/g)).toHaveLength(2);
    await stopped;
  });

  test('announces the end of a connection to a client that sends another request during its answer', async () => {
    const { server, port, arrived, release } = await startHeldServer((response, number) => {
      if (number === 1) beginPart(response);
    });
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST);
    await once(socket, 'data');
    const stopped = server.stop(GRACE_MS);
    socket.write(REQUEST);
    release(1);
    await arrived(2);
    release(2);
    const [, first = '', second = ''] = (await received).split('HTTP/1.1 ');
    expect(first).toContain('Connection: keep-alive');
    expect(second).toContain('Connection: close');
    await stopped;
  });

  test('announces it in the last of several answers that wait, so that none of them is lost', async () => {
    const { server, port, arrived, release } = await startHeldServer(() => undefined);
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST.repeat(3));
    await arrived();
    const stopped = server.stop(GRACE_MS);
    for (let number = 1; number <= 3; number++) {
      await arrived(number);
      release(number);
    }
    const ends = (await received).match(/Connection: \S+/g);
    expect(ends).toEqual(['Connection: keep-alive', 'Connection: keep-alive', 'Connection: close']);
    await stopped;
  });

  test('cuts off an answer that is not complete after the grace', async () => {
    const { server, port, arrived } = await startHeldServer(beginPart);
    const { socket, received } = await openConnection(port);
    socket.on('error', () => undefined).write(REQUEST);
    await arrived();
    await server.stop(50);
    await received.catch(() => undefined); // it may be cut off by a reset
  });

  test('leaves no timer when every connection has ended before the grace is over', async () => {
    const { server } = await startServer((_request, response) => void response.end());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await server.stop(GRACE_MS);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('answers a request that arrives after it on an open connection, and announces the end of that', async () => {
    const { server, port } = await startServer((_request, response) => void response.end('done'));
    const [fresh, kept] = await Promise.all([openConnection(port), openConnection(port)]);
    kept.socket.write(REQUEST);
    await once(kept.socket, 'data');
    const stopped = server.stop(GRACE_MS);
    for (const { socket } of [fresh, kept]) socket.write(REQUEST);
    for (const { received } of [fresh, kept]) expect(await received).toMatch(/Connection: close.*done$/s);
    await stopped; // it does not wait for anybody any more
  });

  test('closes soon a connection that is in its handshake', async () => {
    const pem = await testCertificate();
    const server = createServer({
      handler: () => undefined,
      pem,
      proxies: [],
      log: memoryLog([]),
    });
    const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
    const silent = await openConnection(port);
    await openConnection(port, { ca: pem.cert }); // it is accepted after the other one, so that one is accepted too
    await server.stop(GRACE_MS);
    expect(await silent.received).toBe('');
  });

  test('closes soon connections that ask nothing, also without TLS', async () => {
    const { server, port } = await startServer((_request, response) => void response.end('done'));
    const [silent, kept] = await Promise.all([openConnection(port), openConnection(port)]);
    kept.socket.write(REQUEST);
    await once(kept.socket, 'data');
    await server.stop(GRACE_MS);
    expect(await silent.received).toBe('');
    expect(await kept.received).toMatch(/done$/);
  });
});

test('the answer to a request that could not be parsed is complete, and announces the end of the connection', async () => {
  const { port } = await startServer((_request, response) => void response.end());
  const { socket, received } = await openConnection(port);
  socket.write('NONSENSE\r\n\r\n');
  const { headers, body } = parseAnswer(await received);
  expect(headers.get('connection')).toBe('close');
  expect(headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
});

describe('a drain', () => {
  test('serves new and kept connections on, each of which closes with its next answer', async () => {
    const { server, port } = await startServer((_request, response) => void response.end('done'));
    const kept = await openConnection(port);
    kept.socket.write(REQUEST);
    await once(kept.socket, 'data');
    server.drain();
    const fresh = await openConnection(port);
    for (const { socket } of [fresh, kept]) socket.write(REQUEST);
    for (const { received } of [fresh, kept]) expect(await received).toMatch(/Connection: close.*done$/s);
    expect((await openConnection(port)).socket.readyState).toBe('open');
  });

  test('keeps a connection for one more request whose answer had begun before it', async () => {
    const { server, port, arrived, release } = await startHeldServer(beginPart);
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST);
    await arrived();
    server.drain();
    release();
    for (let text = ''; !text.endsWith('done'); ) text += String(await once(socket, 'data'));
    socket.write(REQUEST);
    await arrived(2);
    release(2);
    expect((await received).match(/half, done/g)).toHaveLength(2);
  });
});

describe('a connection', () => {
  test('answers one request at a time, in their order, however many its client sends', async () => {
    let underWay = 0;
    let most = 0;
    let answered = 0;
    const { port } = await startServer(async (request, response) => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      response.prependOnceListener('finish', () => {
        underWay -= 1;
        answered += 1;
      });
      response.end(`(${request.url})`);
    });
    const { socket, received } = await openConnection(port);
    const paths = Array.from({ length: 2_000 }, (_, number) => `/${number}`);
    const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const padding = `X-Padding: ${'x'.repeat(1_000)}`; // so that a chunk has no more than may wait
    socket.write(
      paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${padding}\r\n\r\n`).join('') + last,
    );
    const bodies = (await received).match(/(?<=\()[^)]*/g);
    expect(bodies).toEqual([...paths, '/last']);
    await until(() => answered === 2_001);
    expect(most).toBe(1);
  });

  test('is not read further while a request waits, so that what its client sends takes no memory', async () => {
    const { port, arrived, begun } = await startHeldServer(() => undefined);
    const { socket } = await openConnection(port);
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    const padded = `GET / HTTP/1.1\r\nHost: x\r\nX-Padding: ${'x'.repeat(1_000)}\r\n\r\n`;
    const isTaken = new Promise((resolve) => socket.write(padded.repeat(20_000), resolve));
    await arrived();
    const outcome = await Promise.race([isTaken, new Promise((resolve) => setTimeout(resolve, 300, 'held'))]);
    expect([outcome, begun()]).toEqual(['held', 1]);
  });

  test('whose client sends requests by the thousand in one piece is closed', async () => {
    const { port } = await startHeldServer(() => undefined);
    const { socket, received } = await openConnection(port);
    socket.write('GET / HTTP/1.1\r\n\r\n'.repeat(5_000));
    expect(await received).toBe('');
  });

  test('is reset when its client reads nothing of an answer for the longest time', async () => {
    const connections = new Connections();
    const { port } = await startServer(
      (_request, response) => void response.end(Buffer.alloc(64 * 1024 * 1024)),
      { timeout: 200 },
      connections,
    );
    const socket = connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    const ended = new Promise((resolve) => socket.once('error', resolve));
    socket.pause().write(REQUEST);
    await until(() => connections.size === 1);
    await until(() => connections.size === 0);
    socket.resume();
    // After an orderly end it would still get what the system had kept of the answer.
    expect(await ended).toMatchObject({ code: 'ECONNRESET' });
  });

  test('that sends something else than HTTP during its answer does not change that answer', async () => {
    const { port, arrived } = await startHeldServer(beginPart);
    const { socket, received } = await openConnection(port);
    socket.write(REQUEST);
    await arrived();
    socket.write('NONSENSE\r\n\r\n');
    const text = await received;
    expect(text).toMatch(/half, $/);
    expect(text).not.toContain('BAD_REQUEST');
  });

  test('that was refused is closed a second later, even if its client still sends', async () => {
    const { port } = await startServer((_request, response) => void response.end());
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).resume();
    socket.write('NONSENSE\r\n\r\n');
    await new Promise((resolve) => socket.once('end', resolve));
    const endedAtMs = performance.now();
    const sending = setInterval(() => socket.write('more'), 50);
    onTestFinished(() => {
      clearInterval(sending);
      socket.destroy();
    });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(performance.now() - endedAtMs).toBeGreaterThan(500);
  });

  test('is refused once the maximum is reached', async () => {
    const { port } = await startServer((_request, response) => void response.end('done'), {
      maxConnections: 2,
    });
    const [first] = await Promise.all([openConnection(port), openConnection(port)]);
    expect(await (await openConnection(port)).received).toBe('');
    first?.socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await first?.received).toMatch(/done$/);
  });

  test('is kept for longer than the minute after which load balancers close theirs', async () => {
    const { port } = await startServer((_request, response) => void response.end('done'));
    const { socket } = await openConnection(port);
    socket.write(REQUEST);
    const [answer] = await once(socket, 'data');
    expect(Number(/Keep-Alive: timeout=(\d+)/.exec(String(answer))?.[1])).toBe(65);
    socket.destroy();
  });
});
