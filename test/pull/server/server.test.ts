import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createServer, type PublicServer } from '../../../src/pull/server/server.ts';
import { KEY, memoryLog, RANGE, startTestApi, testCertificate } from '../../support/service/api.ts';

interface RawAnswer {
  readonly head: string;
  readonly body: {
    readonly error: { readonly code: string; readonly request_id: string; readonly message: string };
  };
}

/** Sends text over TLS and reads until the server ends the connection. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.write(text);
  return readToEnd(socket);
}

async function readToEnd(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  // A reset ends the connection too. What was received before it counts.
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

function parsed(received: string): RawAnswer {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  return { head, body: JSON.parse(body) };
}

function expectShape({ head, body }: RawAnswer, status: number, code: string): void {
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(head).toContain('Content-Type: application/json; charset=utf-8');
  expect(head).toContain('Cache-Control: no-store');
  expect(head).toContain(`X-Request-Id: ${body.error.request_id}`);
  expect(body.error.code).toBe(code);
  expect(body.error.message).toBeTypeOf('string');
}

/** Starts a server that answers its only request when the test says so. */
async function startHeldServer() {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server: PublicServer = createServer({
    pem: await testCertificate(),
    proxies: [],
    log: memoryLog([]),
    handler: (_, response) => {
      arrive();
      void released.then(() => response.end('done'));
    },
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.stop(0));
  return { server, port, arrived, release };
}

async function connectWithTls11(port: number): Promise<void> {
  const versions = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...versions });
  await once(socket, 'secureConnect');
  socket.destroy();
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
const LIST_REQUEST = `GET /api/v1/integration/transactions?${RANGE} HTTP/1.1\r\nX-API-Key: ${KEY}\r\n`;

describe('what the HTTP parser refuses', () => {
  test.each([
    ['that is not HTTP', 'NONSENSE'],
    ['of a version that does not exist', 'GET / HTTP/9.9\r\nHost: x'],
    ['of bytes that are no text', '\u0000\u0001\u00ff'],
    ['with a header without a colon', 'GET / HTTP/1.1\r\nHost: x\r\nbroken'],
    ['with two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2'],
  ])('a request %s is BAD_REQUEST, in the shape of every error', async (_, text) => {
    const api = await startTestApi();
    expectShape(parsed(await exchange(api.address.port, `${text}\r\n\r\n`)), 400, 'BAD_REQUEST');
  });

  test('headers of more than 16 KiB are HEADERS_TOO_LARGE', async () => {
    const api = await startTestApi();
    const large = `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(200_000)}\r\n\r\n`;
    expectShape(parsed(await exchange(api.address.port, large)), 431, 'HEADERS_TOO_LARGE');
  });

  test('a URL of more than 24 KiB is HEADERS_TOO_LARGE', async () => {
    const api = await startTestApi();
    const large = `GET /${'x'.repeat(25_000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    expectShape(parsed(await exchange(api.address.port, large)), 431, 'HEADERS_TOO_LARGE');
  });

  test('a URL with a thousand corporates is not too long, however long their ids', async () => {
    const api = await startTestApi();
    const corporates = Array.from({ length: 1_000 }, (_, index) => Number.MAX_SAFE_INTEGER - index).join(
      '%2C',
    );
    expect((await api.get(`${RANGE}&corporate_id=${corporates}`)).body.error.code).toBe(
      'CORPORATE_NOT_FOUND',
    );
  });

  test('a request that does not arrive in time is REQUEST_TIMEOUT', async () => {
    const api = await startTestApi({
      limits: { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 10 },
    });
    expectShape(parsed(await exchange(api.address.port, 'GET / HTTP/1.1\r\nHost: ')), 408, 'REQUEST_TIMEOUT');
  });

  test('a request without Host is BAD_REQUEST', async () => {
    const api = await startTestApi();
    const received = await exchange(api.address.port, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n');
    expectShape(parsed(received), 400, 'BAD_REQUEST');
  });

  test('an unknown expectation is ignored', async () => {
    const api = await startTestApi();
    const text = `${LIST_REQUEST}Host: x\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n`;
    expect(await exchange(api.address.port, text)).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  });

  test('is logged with the id that its client got', async () => {
    const api = await startTestApi();
    const { body } = parsed(await exchange(api.address.port, 'NONSENSE\r\n\r\n'));
    expect(api.logLines).toContainEqual(
      expect.objectContaining({ request_id: body.error.request_id, code: 'BAD_REQUEST', status: 400 }),
    );
  });
});

describe('HTTPS only', () => {
  test('plain HTTP to the public port gets nothing', async () => {
    const api = await startTestApi();
    const socket = connectPlain(api.address.port, '127.0.0.1');
    socket.write(REQUEST);
    expect(await readToEnd(socket)).toBe('');
    expect((await api.get(RANGE)).status).toBe(200);
  });

  test('a TLS version before 1.2 is refused', async () => {
    const api = await startTestApi();
    await expect(connectWithTls11(api.address.port)).rejects.toThrow('alert protocol version');
  });

  test('a new certificate is used by the next connection, and the protocol’s minimum stays', async () => {
    const { server, port, release } = await startHeldServer();
    release();
    const names = async () => {
      const socket: TLSSocket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      const { subject } = socket.getPeerCertificate();
      socket.destroy();
      return subject.CN;
    };
    expect(await names()).toBe('localhost');
    const next = await generate([{ name: 'commonName', value: 'renewed.example' }], { keyType: 'ec' });
    server.reload({ cert: next.cert, key: next.private });
    expect(await names()).toBe('renewed.example');
    await expect(connectWithTls11(port)).rejects.toThrow('alert protocol version');
  });
});

describe('behind a proxy that ends TLS', () => {
  const terminated = (proxies: readonly string[]) => ({
    tlsTerminated: true,
    proxies,
  });

  test('a request that came over HTTPS is served', async () => {
    const api = await startTestApi(terminated(['127.0.0.0/8']));
    expect((await api.get(RANGE, { headers: { 'x-forwarded-proto': 'https' } })).status).toBe(200);
  });

  test.each([{}, { 'x-forwarded-proto': 'http' }, { 'x-forwarded-proto': 'http, https' }])(
    'a request that says %o is HTTPS_REQUIRED',
    async (headers) => {
      const api = await startTestApi(terminated(['127.0.0.0/8']));
      const answer = await api.get(RANGE, { headers });
      expect(answer.status).toBe(400);
      expect(answer.body.error.code).toBe('HTTPS_REQUIRED');
      expect(answer.body.error.request_id).toBe(answer.headers['x-request-id']);
    },
  );

  test('an address that is not a trusted proxy is disconnected without an answer', async () => {
    const api = await startTestApi(terminated(['10.0.0.0/8']));
    const socket = connectPlain(api.address.port, '127.0.0.1');
    socket.write(REQUEST);
    expect(await readToEnd(socket)).toBe('');
    expect(api.logLines).toMatchObject([{ turned_away: { not_a_proxy: 1 } }]);
  });
});

describe('a stop', () => {
  test('answers the request in progress and then closes its connection', async () => {
    const { server, port, arrived, release } = await startHeldServer();
    const answer = exchange(port, REQUEST);
    await arrived;
    const stopped = server.stop(10_000);
    release();
    const received = await answer;
    expect(received).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(received).toContain('Connection: close\r\n');
    expect(received).toMatch(/done$/);
    await stopped;
  });

  test('closes soon connections that wait, have sent half a request or nothing, or are not TLS yet', async () => {
    const { server, port, release } = await startHeldServer();
    release();
    const tls = async (text: string) => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      if (text !== '') socket.write(text);
      return socket;
    };
    const kept = await tls(REQUEST);
    await once(kept, 'data');
    const sockets: Socket[] = [kept, await tls('GET / HT'), await tls(''), connectPlain(port, '127.0.0.1')];
    const closed = sockets.map((socket) => readToEnd(socket));
    await new Promise((resolve) => setImmediate(resolve));
    await server.stop(600_000); // longer than this test may take
    await Promise.all(closed);
  });

  test('cuts off what is still not answered after its grace', async () => {
    const { server, port, arrived } = await startHeldServer();
    const answer = exchange(port, REQUEST);
    await arrived;
    await server.stop(10);
    expect(await answer).toBe('');
  });

  test('accepts no new connection', async () => {
    const { server, port } = await startHeldServer();
    await server.stop(0);
    const socket = connectPlain(port, '127.0.0.1');
    await expect(once(socket, 'connect')).rejects.toThrow('ECONNREFUSED');
  });
});

test('an address that is taken is an error of listen', async () => {
  const { port } = await startHeldServer();
  const other = createServer({
    pem: await testCertificate(),
    proxies: [],
    log: memoryLog([]),
    handler: () => undefined,
  });
  await expect(other.listen({ host: '127.0.0.1', port })).rejects.toThrow("can't listen");
});
