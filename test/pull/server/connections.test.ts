import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createServer } from '../../../src/pull/server/server.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';
import { beginPart, REQUEST, startHeldServer, startServer } from '../../support/service/held-server.ts';
import { openConnection, parseAnswer } from '../../support/service/raw-connection.ts';

/** Longer than a test may take: what waits for the end of the grace fails. */
const GRACE_MS = 600_000;

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
