import { once } from 'node:events';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { createOpsServer, type Readiness } from '../../../src/service/ops/ops-server.ts';
import { readDocument } from '../../support/documents.ts';
import { memoryLog } from '../../support/service/api.ts';
import { openConnection } from '../../support/service/raw-connection.ts';

async function start(
  readiness: () => Readiness = () => ({ ready: true, checks: {} }),
  checkpoint?: () => Promise<string | undefined>,
) {
  const metrics = createMetrics();
  const logLines: Record<string, unknown>[] = [];
  const server = createOpsServer({
    readiness,
    metrics,
    log: memoryLog(logLines),
    ...(checkpoint && { checkpoint }),
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.stop());
  const get = async (path: string) => {
    const { statusCode, headers, body } = await request(`http://127.0.0.1:${port}${path}`, { reset: true });
    return { status: statusCode, headers, text: await body.text() };
  };
  return { get, metrics, logLines, server, port };
}

test('/healthz says that the process lives', async () => {
  const { get } = await start();
  expect(await get('/healthz')).toMatchObject({ status: 200, text: '{"status":"ok"}' });
});

test('/readyz shows the conditions of readiness, and is 503 until all hold', async () => {
  let accounts = false;
  const { get } = await start(() => ({ ready: accounts, checks: { accounts } }));
  expect(await get('/readyz')).toMatchObject({
    status: 503,
    text: '{"ready":false,"checks":{"accounts":false}}',
  });
  accounts = true;
  expect(await get('/readyz')).toMatchObject({
    status: 200,
    text: '{"ready":true,"checks":{"accounts":true}}',
  });
});

test('/metrics is what the registry holds, Node’s own event loop delay among it', async () => {
  const { get, metrics } = await start();
  metrics.requests.inc({ status: 200, code: '' });
  const { status, headers, text } = await get('/metrics');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe(metrics.contentType);
  expect(text).toContain('fuel_http_requests_total{status="200",code=""} 1');
  expect(text).toContain('fuel_edge_not_enforced_total 0');
  expect(text).toContain('nodejs_eventloop_lag_p99_seconds');
});

test('/openapi.yaml is the document of the API, byte for byte', async () => {
  const { get } = await start();
  const { status, headers, text } = await get('/openapi.yaml');
  expect([status, headers['content-type']]).toEqual([200, 'application/yaml']);
  expect(text).toBe(readDocument('docs/openapi.yaml'));
});

test('any other path is 404, any other method 405, and no answer may be cached', async () => {
  const { get, port } = await start();
  expect((await get('/nowhere')).status).toBe(404);
  const url = `http://127.0.0.1:${port}/readyz`;
  const posted = await request(url, { method: 'POST', reset: true });
  await posted.body.dump();
  expect([posted.statusCode, posted.headers.allow]).toEqual([405, 'HEAD, GET']);
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.yaml', '/nowhere']) {
    expect((await get(path)).headers['cache-control']).toBe('no-store');
  }
});

test('a stop closes also the connections that clients keep, or have sent half a request on', async () => {
  const { server, port } = await start();
  const [kept, half] = await Promise.all([openConnection(port), openConnection(port)]);
  half.socket.write('GET /healthz HT');
  kept.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(kept.socket, 'data');
  const startedAtMs = performance.now();
  await server.stop();
  expect(await kept.received).toContain('"ok"');
  expect(await half.received).toBe('');
  expect(performance.now() - startedAtMs).toBeLessThan(5_000);
});

test('a check that fails is a 500 that is logged', async () => {
  const { get, logLines } = await start(() => {
    throw new Error('broken');
  });
  expect((await get('/readyz')).status).toBe(500);
  expect(JSON.stringify(logLines)).toContain('broken');
});

test('/checkpoint has the newest signed checkpoint, and is 404 before the first', async () => {
  let note: string | undefined;
  const { get, logLines } = await start(undefined, async () => note);
  expect((await get('/checkpoint')).status).toBe(404);
  note = 'log\n1\nroot\n';
  expect(await get('/checkpoint')).toMatchObject({
    status: 200,
    text: note,
    headers: { 'content-type': expect.stringContaining('text/plain') },
  });
  expect(logLines).toEqual([]);
});
