import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../support/fetch-answer.ts';
import { exchange, openConnection, parseAnswer } from '../support/service/raw-connection.ts';
import { type GetOptions, ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PATH = '//api/v1/integration/transactions';

describe('every answer', () => {
  const service = new ServiceProcess();
  let key = '';

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
  });

  const get = (path: string, options: GetOptions = {}) => service.get(path, { key, ...options });

  function expectCommonHeaders({ headers }: Answer): void {
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['x-request-id']).toMatch(UUID);
    expect(headers['x-powered-by']).toBeUndefined();
  }

  it('has the common headers and its own request id when it is a page', async () => {
    const one = await get(`/transactions?${SEPTEMBER}`);
    const other = await get(`/transactions?${SEPTEMBER}`);
    expect([one.status, other.status]).toEqual([200, 200]);
    expectCommonHeaders(one);
    expect(one.headers['x-request-id']).not.toBe(other.headers['x-request-id']);
    expect(one.headers['content-length']).toBe(String(Buffer.byteLength(one.text)));
  });

  it('does not take a request id from the client', async () => {
    const { headers } = await get(`/transactions?${SEPTEMBER}`, { headers: { 'X-Request-Id': 'mine' } });
    expect(headers['x-request-id']).toMatch(UUID);
  });

  it.each([
    ['//'],
    ['//api/v1/integration'],
    ['//api/v1/integration/'],
    [`${PATH}/`],
    [`${PATH}/501`],
    ['//api/v1/integration//transactions'],
    ['//api/v1/integration/Transactions'],
    ['//api/v2/integration/transactions'],
    ['//api/v1/integration/%74ransactions'],
    ['//api/v1/integration/../integration/keys'],
    ['//healthz'],
    ['//metrics'],
    ['//openapi.yaml'],
    ['//%'],
  ])('is 404 NOT_FOUND at %s', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual({
      error: {
        code: 'NOT_FOUND',
        message: expect.any(String),
        request_id: answer.headers['x-request-id'],
      },
    });
    expectCommonHeaders(answer);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const)(
    'is 405 with Allow for the method %s',
    async (method) => {
      const answer = await get(PATH, { method });
      expect([answer.status, answer.body.error.code, answer.headers.allow]).toEqual([
        405,
        'METHOD_NOT_ALLOWED',
        'GET',
      ]);
      expect(answer.body.error.request_id).toBe(answer.headers['x-request-id']);
      expectCommonHeaders(answer);
    },
  );

  it('is 405 without a body for HEAD', async () => {
    const answer = await get(`/transactions?${SEPTEMBER}`, { method: 'HEAD' });
    expect([answer.status, answer.headers.allow, answer.text]).toEqual([405, 'GET', '']);
    expectCommonHeaders(answer);
  });

  it('judges path and method before the key', async () => {
    expect((await service.get('//nowhere')).body.error.code).toBe('NOT_FOUND');
    expect((await service.get(PATH, { method: 'POST' })).body.error.code).toBe('METHOD_NOT_ALLOWED');
  });

  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['bytes of no text', Buffer.from([0, 1, 2, 255, 254, 13, 10, 13, 10])],
    ['a header without a colon', 'GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n'],
    ['a request without a host', `GET ${PATH.slice(1)} HTTP/1.1\r\nConnection: close\r\n\r\n`],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ])('is 400 BAD_REQUEST to %s', async (_name, sent) => {
    const { status, headers, body } = parseAnswer(await exchange(service.port, sent, { ca: service.ca }));
    expect(status).toBe(400);
    expect(JSON.parse(body)).toEqual({
      error: { code: 'BAD_REQUEST', message: expect.any(String), request_id: headers.get('x-request-id') },
    });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-request-id')).toMatch(UUID);
  });

  it.each([
    ['a header', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['a query', `GET ${PATH.slice(1)}?from=${'1'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ])('is 431 HEADERS_TOO_LARGE to %s of 100 kB', async (_name, sent) => {
    const { status, headers, body } = parseAnswer(await exchange(service.port, sent, { ca: service.ca }));
    expect([status, JSON.parse(body).error.code]).toEqual([431, 'HEADERS_TOO_LARGE']);
    expect(headers.get('x-request-id')).toBe(JSON.parse(body).error.request_id);
  });

  it('is never plain HTTP on the HTTPS port', async () => {
    const received = await exchange(service.port, `GET ${PATH.slice(1)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(received).not.toContain('HTTP/1.1 200');
    expect(received).not.toContain('INVALID_API_KEY');
  });

  it('refuses TLS before 1.2', async () => {
    const { connect } = await import('node:tls');
    const failed = await new Promise<boolean>((resolve) => {
      const socket = connect({
        host: '127.0.0.1',
        port: service.port,
        ca: service.ca,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      });
      socket.once('secureConnect', () => resolve(false)).once('error', () => resolve(true));
    });
    expect(failed).toBe(true);
  });

  it('comes in order for pipelined requests, and a broken one does not harm the others', async () => {
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;
    const good = `${PATH.slice(1)}?${SEPTEMBER}`;
    const { socket, received } = await openConnection(service.port, { ca: service.ca });
    socket.write(request(good) + request('/nowhere') + request(good));
    setTimeout(() => socket.write('broken\r\n\r\n'), 300);
    const statuses = [...(await received).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([200, 404, 200, 400]);
  });

  it('goes into the log once, with the key’s prefix and never its secret, its query or an address', async () => {
    const answer = await get(`/transactions?${SEPTEMBER}&corporate_id=424242`);
    const id = answer.headers['x-request-id'];
    const line = await service.logged((candidate) => candidate.request_id === id);
    const [, , prefix = '', secret = ''] = key.split('_');
    expect(line).toMatchObject({
      method: 'GET',
      status: 404,
      code: 'CORPORATE_NOT_FOUND',
      key_prefix: prefix,
    });
    expect(service.logLines.filter((candidate) => candidate.request_id === id)).toHaveLength(1);
    for (const hidden of [secret, '424242']) expect(service.output).not.toContain(hidden);
  });
});
