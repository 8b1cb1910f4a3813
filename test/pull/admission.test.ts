import { describe, expect, test } from 'vitest';
import { receiverCertificate } from '../support/deliveries/tls-receiver.ts';
import { KEY, LIVE_KEY, RANGE, startTestApi } from '../support/service/api.ts';
import { exchange, parseAnswer } from '../support/service/raw-connection.ts';

const PATH = '/api/v1/integration/transactions';

/** Returns the answer to a request that no client would write. */
async function answerTo(requestLine: string, ...headers: readonly string[]) {
  const pem = await receiverCertificate();
  const api = await startTestApi({ pem });
  const lines = [requestLine, `X-API-Key: ${KEY}`, 'Connection: close', ...headers];
  const text = `${lines.join('\r\n')}\r\n\r\n`;
  return { ...parseAnswer(await exchange(api.address.port, text, { ca: pem.cert })), api };
}

describe('a request', () => {
  test('of HTTP/1.0 needs no host', async () => {
    expect((await answerTo(`GET ${PATH}?${RANGE} HTTP/1.0`)).status).toBe(200);
  });

  test('may name scheme and host in its first line', async () => {
    for (const origin of ['https://api.example.com', 'HTTP://api.example.com:8443']) {
      const answer = await answerTo(`GET ${origin}${PATH}?${RANGE} HTTP/1.1`, 'Host: api.example.com');
      expect(answer.status).toBe(200);
    }
  });

  test('has one host: with two lines of it, equal or not, it is BAD_REQUEST', async () => {
    for (const [version, lines] of [
      ['1.1', ['Host: a', 'Host: b']],
      ['1.1', ['host: a', 'X: y', 'HOST: a']],
      ['1.0', ['Host: a', 'Host: a']],
    ] as const) {
      const answer = await answerTo(`GET ${PATH}?${RANGE} HTTP/${version}`, ...lines);
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, 'BAD_REQUEST']);
    }
    expect((await answerTo(`GET ${PATH}?${RANGE} HTTP/1.1`, 'X: Host', 'Host: a')).status).toBe(200);
  });

  test('to CONNECT is one with another method, and its connection ends with the answer', async () => {
    const pem = await receiverCertificate();
    const api = await startTestApi({ pem });
    for (const target of ['127.0.0.1:18443', 'x']) {
      // The request has no `Connection: close`, and the text after it is meant for the tunnel.
      const text = `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n`;
      const answer = parseAnswer(await exchange(api.address.port, text, { ca: pem.cert }));
      const [status, allow, connection] = [
        answer.status,
        ...['allow', 'connection'].map((name) => answer.headers.get(name)),
      ];
      expect([status, allow, connection]).toEqual([405, 'GET', 'close']);
      const request_id = answer.headers.get('x-request-id');
      expect(JSON.parse(answer.body).error).toMatchObject({ code: 'METHOD_NOT_ALLOWED', request_id });
    }
    expect(api.logLines.at(-1)).toMatchObject({ method: 'CONNECT', status: 405 });
  });

  test('is logged with the first 200 characters of its path', async () => {
    const { status, api } = await answerTo(`GET /${'x'.repeat(1_000)} HTTP/1.1`, 'Host: x');
    expect(status).toBe(404);
    expect(api.logLines.at(-1)).toMatchObject({ path: `/${'x'.repeat(199)}` });
  });
});

test('while the rows of accounts are not ready, neither an address nor a rate is judged by it', async () => {
  let state: 'ready' | 'unavailable' = 'unavailable';
  const api = await startTestApi({
    environment: 'production',
    proxies: ['127.0.0.1'],
    availability: () => state,
  });
  const from = (address: string) =>
    api.get(RANGE, { key: LIVE_KEY, headers: { 'x-forwarded-for': address } });
  for (let count = 0; count < 61; count++) expect((await from('198.51.100.1')).status).toBe(503);
  state = 'ready';
  expect((await from('198.51.100.1')).status).toBe(403);
  expect((await from('203.0.113.1')).status).toBe(200);
});

test('behind proxies that end TLS, every hop was HTTPS however it is written', async () => {
  const proxies = ['127.0.0.0/8'];
  const api = await startTestApi({ tlsTerminated: true, proxies });
  const statusFor = async (hops: string) =>
    (await api.get(RANGE, { headers: { 'x-forwarded-proto': hops } })).status;
  for (const hops of ['https', 'HTTPS', 'https,https', 'https , https'])
    expect(await statusFor(hops)).toBe(200);
  for (const hops of ['https,', 'http,https', 'https,http', 'wss', ' '])
    expect(await statusFor(hops)).toBe(400);
});
