import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen, urlHost } from '../src/listen.ts';

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
    message: `can't listen on 127.0.0.1:${port}: name another address`,
  });
});
