import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { createConsole } from '../../../src/operator/console/console.ts';
import type { ConsoleParts } from '../../../src/operator/console/figures/console-parts.ts';
import { AttemptHistory } from '../../../src/operator/console/figures/history.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { createOpsServer } from '../../../src/service/ops/ops-server.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import { ask } from '../../support/ops/ask-page.ts';
import { memoryLog } from '../../support/service/api.ts';

async function start() {
  const readiness = async () => ({ ready: false, checks: { started: false, mongodb: true } });
  const console = createConsole({
    hosts: ['ops.example.com'],
    environment: 'staging',
    clock: { now: Date.now },
    readiness,
  });
  const metrics = createMetrics();
  const server = createOpsServer({ readiness, metrics, log: memoryLog([]), console: console.handle });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.stop());
  return { console, url: `http://127.0.0.1:${port}` };
}

describe('the console before the service has started', () => {
  test('says what the start waits for', async () => {
    const { url } = await start();
    const { status, text } = await ask(`${url}/deliveries`);
    expect(status).toBe(503);
    expect(text).toContain('<code>started</code>: not yet');
    expect(text).toContain('<code>mongodb</code>: yes');
  });

  test.each([
    ['127.0.0.1:9464', true],
    ['127.0.0.1', true],
    ['[::1]:9464', true],
    ['localhost', true],
    ['LOCALHOST:9464', true],
    ['localhost.:9464', true],
    ['ops.example.com:9464', true],
    ['Ops.Example.com', true],
    ['evil.example.com', false],
    ['ops.example.com.evil.example', false],
    ['127.0.0.1.evil.example', false],
    ['localhost.evil.example', false],
    ['1.2.3', false],
    ['[nonsense]:1', false],
    ['ops.example.com@evil.example', false],
  ])('asked for as "%s" it is served: %s; health and metrics always are', async (host, isServed) => {
    const { url } = await start();
    const headers = { Host: host };
    const expected = isServed ? 503 : 421;
    expect((await ask(url, { headers })).status).toBe(expected);
    expect((await ask(`${url}/console/console.js`, { headers })).status).toBe(isServed ? 200 : 421);
    expect((await ask(`${url}/nowhere`, { headers })).status).toBe(isServed ? 404 : 421);
    expect((await ask(`${url}/healthz`, { headers })).status).toBe(200);
    expect((await ask(`${url}/readyz`, { headers })).status).toBe(503);
    expect((await ask(`${url}/metrics`, { headers })).status).toBe(200);
  });

  test.each(['', 'Host:\r\n'])('a request with no host, "%s", is not served', async (header) => {
    const { url } = await start();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.end(`GET / HTTP/1.0\r\n${header}\r\n`);
    expect(await textOf(socket)).toMatch(/^HTTP\/1.1 421 /);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('refuses %s everywhere', async (method) => {
    const { url } = await start();
    for (const path of ['/', '/webhooks', '/nowhere', '/console/console.js']) {
      const { status, headers } = await ask(`${url}${path}`, { method });
      expect([path, status, headers.allow]).toEqual([path, 405, 'GET, HEAD']);
    }
  });

  test('HEAD is GET without the body', async () => {
    const { url } = await start();
    const { status, text } = await ask(url, { method: 'HEAD' });
    expect([status, text]).toEqual([503, '']);
  });

  test.each([
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Fetch-Site': 'same-site' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }, 503],
    [{ 'Sec-Fetch-Site': 'same-origin' }, 503],
    [{ 'Sec-Fetch-Site': 'none' }, 503],
    [{}, 503],
  ])('a request that a browser describes as %j gets %i', async (headers, expected) => {
    const { url } = await start();
    expect((await ask(url, { headers: headers as Record<string, string> })).status).toBe(expected);
  });

  test('every answer forbids what it does not need', async () => {
    const { url } = await start();
    for (const path of ['/', '/nowhere', '/console/console.js', '/%zz']) {
      const { headers } = await ask(`${url}${path}`);
      const policy = String(headers['content-security-policy']).split('; ');
      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "frame-ancestors 'none'",
          "require-trusted-types-for 'script'",
        ]),
      );
      expect(headers).toMatchObject({
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
      expect(headers['cache-control']).toBe(path.startsWith('/console/') ? 'no-cache' : 'no-store');
    }
  });
});

describe('the console while no store answers', () => {
  const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'the store is away'));
  const stores = {
    store: { head: away, readStream: away },
    view: { checkpoint: away, countParked: away, parked: away, find: away, leaving: away },
    subscriptions: { status: away },
    coordination: { holder: away, live: away, checkpoint: away },
    accounts: { get: away, find: away, count: away },
    queue: {
      backlog: away,
      dueLanes: away,
      find: away,
      failingLanes: away,
      page: away,
      pendingLanes: away,
      countIn: away,
    },
  };
  const opened = Object.entries(stores).map(([name, store]) => [name, () => store]);
  const unavailable = {
    environment: 'staging',
    clock: { now: Date.now },
    id: 'one',
    roles: ['webhooks'],
    ...stores,
    attempts: new AttemptHistory(),
    readings: [],
    config: { FUEL_ENVIRONMENT: 'staging' },
    engines: {
      remote: [{ name: 'mongodb' }],
      embedded: [],
      state: async () => 'current',
      ...Object.fromEntries(opened),
    },
    readiness: async () => ({ ready: false, checks: { mongodb: false } }),
    lastProof: () => undefined,
  } as unknown as ConsoleParts;

  test('says what is unknown, and shows no other value instead', async () => {
    const { console, url } = await start();
    console.serve(unavailable);
    const { status, text } = await ask(url);
    expect(status).toBe(200);
    expect(text).toContain('mongodb cannot be reached');
    for (const name of ['Pending', 'Oldest due', 'Held']) {
      expect(text).toContain(
        `<dt>${name}</dt><dd><span class="unknown" title="the store is away">unknown</span></dd>`,
      );
    }
    for (const heading of ['Followers of the events', 'Live processes']) {
      expect(text).toContain(`<h2>${heading}</h2><p><span class="unknown"`);
    }
    expect(text).toMatch(/not known: [^(]*webhooks[^(]*\(the store is away\)/);
    expect((await ask(`${url}/projections`)).status).toBe(200);
  });

  test.each(['/deliveries', '/deliveries/x', '/transactions/5'])(
    'answers 503 on %s, with why',
    async (path) => {
      const { console, url } = await start();
      console.serve(unavailable);
      const { status, text } = await ask(`${url}${path}`);
      expect(status).toBe(503);
      expect(text).toContain('the store is away');
    },
  );
});

test('a key is shown while what it was used for cannot be read', async () => {
  const { console, url } = await start();
  const lost = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'the log is away'));
  console.serve({
    environment: 'staging',
    clock: { now: Date.now },
    accounts: await rowsAfter(opened(), keyIssued()),
    store: { readStream: async () => [] },
    queue: { health: lost, backlog: lost, attempts: lost, pace: lost },
    engines: {
      requests: () => ({
        lastUses: async () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'it is away')),
      }),
    },
  } as unknown as ConsoleParts);
  const { status, text } = await ask(`${url}/keys/${PREFIX}`);
  expect(status).toBe(200);
  expect(text).toContain('The last use of the key is unknown: it is away.');
  expect(text).toContain('API_INTEGRATION_NOT_ENABLED');
  expect(text).toContain('deliveries are unknown: the log is away');
});

test('a parameter that the page does not know does not make another page', async () => {
  const { console, url } = await start();
  const made: number[] = [];
  const get = async (_: unknown, ids: number[]) => {
    made.push(...ids);
    return [];
  };
  const accounts = { get } as unknown as ConsoleParts['accounts'];
  console.serve({ clock: { now: Date.now }, accounts, config: {} } as ConsoleParts);
  for (let at = 0; at < 5; at++) await ask(`${url}/accounts/5?again=${at}`);
  expect(made).toEqual([5]);
});
