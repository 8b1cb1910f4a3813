import { once } from 'node:events';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ApiOptions } from '../../src/pull/app.ts';
import { BASE_PATH } from '../../src/pull/app.ts';
import { KEY, RANGE, startTestApi } from '../support/service/api.ts';

const PATH = `${BASE_PATH}/transactions?${RANGE}`;

interface Asked {
  readonly status: number;
  readonly head: string;
}

/** One connection to an API, on which requests are made one after the other. */
async function connection(options: Partial<ApiOptions> = {}) {
  const api = await startTestApi(options);
  const socket: TLSSocket = connectTls({
    port: api.address.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
  });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  const closed = once(socket, 'close');
  return {
    closed,
    async ask({ path = PATH, key, method = 'GET' }: { path?: string; key?: string; method?: string }) {
      const keyLine = key === undefined ? '' : `X-API-Key: ${key}\r\n`;
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\n${keyLine}\r\n`);
      const [chunk] = await once(socket, 'data');
      const [head = ''] = String(chunk).split('\r\n\r\n');
      return { status: Number(head.split(' ')[1]), head: head.toLowerCase() } satisfies Asked;
    },
  };
}

describe('a connection on which no key was accepted', () => {
  test.each([
    ['a missing key', {}, 401],
    ['an unknown key', { key: KEY.replace('SSS', 'TTT') }, 401],
    ['an unknown path', { path: '/login' }, 404],
    ['an unknown path, asked for with a key', { path: '/login', key: KEY }, 404],
  ])('ends with the answer to %s', async (_, request, status) => {
    const { ask, closed } = await connection();
    const answer = await ask(request);
    expect(answer.status).toBe(status);
    expect(answer.head).toContain('\r\nconnection: close');
    await closed;
  });

  test('stays open for a short time after any other refusal, and says so', async () => {
    const { ask, closed } = await connection({ unprovenIdleMs: 1_000 });
    const answer = await ask({ method: 'POST' });
    expect(answer.status).toBe(405);
    expect(answer.head).toContain('\r\nkeep-alive: timeout=1');
    expect(answer.head.match(/keep-alive: timeout/g)).toHaveLength(1);
    const answeredAtMs = performance.now();
    await closed;
    expect(performance.now() - answeredAtMs).toBeLessThan(30_000);
  });
});

describe('a connection on which a key was accepted', () => {
  test('stays open for long, also after a refusal', async () => {
    const { ask } = await connection();
    const page = await ask({ key: KEY });
    expect(page.status).toBe(200);
    expect(page.head).toContain('\r\nkeep-alive: timeout=65');
    for (const path of [`${PATH}&corporate_id=99`, '/login']) {
      expect((await ask({ key: KEY, path })).status).toBe(404);
    }
    const refused = await ask({ key: KEY, method: 'POST' });
    expect([refused.status, refused.head.includes('keep-alive: timeout=65')]).toEqual([405, true]);
  });

  test('ends with a 401', async () => {
    const { ask, closed } = await connection();
    expect((await ask({ key: KEY })).status).toBe(200);
    expect((await ask({})).head).toContain('\r\nconnection: close');
    await closed;
  });

  test('is one too where the account may not be read', async () => {
    const { ask } = await connection();
    expect((await ask({ key: KEY, path: `${BASE_PATH}/transactions` })).head).toContain('timeout=65');
  });
});

test('a trusted proxy’s connection is not one caller’s: it stays open whatever is answered', async () => {
  const { ask } = await connection({ proxies: ['127.0.0.1'] });
  for (const request of [{}, { path: '/login' }, { method: 'POST' }]) {
    expect((await ask(request)).head).toContain('keep-alive: timeout=65');
  }
});
