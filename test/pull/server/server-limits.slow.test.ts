import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createServer } from '../../../src/pull/server/server.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';

/** Returns what is received until the other side ends the connection, and after how many seconds that is. */
async function endOf(socket: Socket): Promise<{ text: string; seconds: number }> {
  const openedAtMs = performance.now();
  let text = '';
  socket
    .on('error', () => undefined)
    .on('data', (chunk) => {
      text += chunk;
    });
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => socket.once('close', resolve));
  return { text, seconds: (performance.now() - openedAtMs) / 1000 };
}

/** Sends the first text at once, then one more byte every half a second. */
function dripping(socket: Socket, first: string): Socket {
  socket.write(first);
  const timer = setInterval(() => socket.writable && socket.write('x'), 500);
  socket.once('close', () => clearInterval(timer));
  return socket;
}

test('no client holds a connection by being slow: in its handshake, its headers or its body', async () => {
  const server = createServer({
    pem: await testCertificate(),
    proxies: [],
    log: memoryLog([]),
    handler: (request, response) => void request.resume().once('end', () => response.end('done')),
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.stop(0));
  const tls = () => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  const body = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n';
  const [handshake, headers, request] = await Promise.all([
    endOf(connect(port, '127.0.0.1')),
    endOf(dripping(tls(), 'GET / HTTP/1.1\r\nX-Drip: ')),
    endOf(dripping(tls(), body)),
  ]);
  for (const { seconds } of [handshake, headers]) {
    expect(seconds).toBeGreaterThan(9);
    expect(seconds).toBeLessThan(30);
  }
  expect(request.seconds).toBeGreaterThan(14);
  expect(request.seconds).toBeLessThan(35);
  expect(handshake.text).toBe('');
  for (const { text } of [headers, request]) expect(text).toContain('REQUEST_TIMEOUT');
});
