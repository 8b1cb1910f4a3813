import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen, passedSockets, urlHost } from '../../src/base/listen.ts';

test('an IPv6 address stands in brackets in a URL, other hosts as they are', () => {
  expect(['::1', '127.0.0.1', 'localhost'].map(urlHost)).toEqual(['[::1]', '127.0.0.1', 'localhost']);
});

test('port 0 picks a free one, which is returned; a taken one is refused with its address', async () => {
  const [first, second] = [createServer(), createServer()];
  onTestFinished(() => void first.close());
  const { address, port } = await listen(first, { host: '127.0.0.1', port: 0 });
  expect(address).toBe('127.0.0.1');
  expect(port).toBeGreaterThan(0);
  await expect(listen(second, { host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'REFUSED',
    message: `can't listen on 127.0.0.1:${port}: use another address`,
  });
});

test('a server that listens takes its errors itself from then on', async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  await listen(server, { host: '127.0.0.1', port: 0 });
  expect(server.listenerCount('error')).toBe(0);
});

test('sockets are those that were passed to this process, and to no parent of it', () => {
  expect(passedSockets({ LISTEN_PID: String(process.pid), LISTEN_FDS: '2' })).toBe(2);
  expect(passedSockets({ LISTEN_PID: String(process.ppid), LISTEN_FDS: '2' })).toBe(0);
  expect(passedSockets({})).toBe(0);
});

test('a socket that is none is refused, and says which', async () => {
  const file = openSync(process.execPath, 'r');
  onTestFinished(() => closeSync(file));
  await expect(listen(createServer(), { fd: file })).rejects.toMatchObject({
    code: 'REFUSED',
    message: `can't listen on socket ${file}, which was passed to this process: it must be a listening TCP socket`,
  });
});
