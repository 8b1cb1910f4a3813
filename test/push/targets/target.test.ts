import { expect, test } from 'vitest';
import { readTarget } from '../../../src/push/targets/target.ts';

test('a URL leads to a host, a port and a path with its query', () => {
  expect(readTarget('https://hook.test/a/b?c=d', false)).toEqual({
    ok: true,
    target: {
      url: 'https://hook.test/a/b?c=d',
      origin: 'https://hook.test',
      host: 'hook.test',
      port: 443,
      path: '/a/b?c=d',
    },
  });
});

test('a port that is not 443 is part of the origin', () => {
  expect(readTarget('https://hook.test:8443/', true)).toMatchObject({
    target: { origin: 'https://hook.test:8443', host: 'hook.test', port: 8443, path: '/' },
  });
});

test('an IPv6 address has no brackets, a name no dot at its end', () => {
  expect(readTarget('https://[2606:4700::1111]/', false)).toMatchObject({
    target: { origin: 'https://[2606:4700::1111]', host: '2606:4700::1111' },
  });
  expect(readTarget('https://hook.test./', false)).toMatchObject({ target: { host: 'hook.test' } });
});

test('a URL that was set under other rules is refused with the reason', () => {
  expect(readTarget('https://127.0.0.1:8443/', true).ok).toBe(true);
  expect(readTarget('https://127.0.0.1:8443/', false)).toEqual({
    ok: false,
    reason: 'must use port 443',
  });
});
