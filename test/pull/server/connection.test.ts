import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ServerConnections } from '../../../src/pull/server/connections.ts';
import { beginPart, REQUEST, startHeldServer, startServer } from '../../support/service/held-server.ts';
import { openConnection } from '../../support/service/raw-connection.ts';
import { until } from '../../support/waiting.ts';

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
    const connections = new ServerConnections();
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
