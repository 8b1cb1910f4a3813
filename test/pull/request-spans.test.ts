import { expect, onTestFinished, test } from 'vitest';
import { startTracing } from '../../src/base/tracing/start-tracing.ts';
import { loadConfig } from '../../src/engines/engines.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { KEY, memoryLog, PREFIX, startTestApi } from '../support/service/api.ts';

/** An API whose spans a collector gets. `spans` ends the export. */
async function traced() {
  const receiver = await startOtlpReceiver();
  const config = loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint }, 'command');
  const { stop } = await startTracing(config, memoryLog([]));
  onTestFinished(stop);
  const spans = async () => {
    await stop();
    return receiver.spans;
  };
  return { api: await startTestApi(), spans };
}

test('a request is a server span with the steps that take time', async () => {
  const { api, spans } = await traced();
  const { headers } = await api.get('from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z');
  const requestId = String(headers['x-request-id']);
  const [server, ...steps] = await spans();
  expect(server).toMatchObject({
    traceId: requestId.replaceAll('-', ''),
    parentId: '',
    name: 'GET /transactions',
    kind: 2,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/transactions',
      'http.response.status_code': 200,
      'fuel.key.prefix': PREFIX,
      'fuel.page.rows': 0,
    },
    links: [],
    isError: false,
  });
  expect(steps.map(({ name }) => name)).toEqual(['key', 'rate window', 'page']);
  for (const step of steps) {
    expect(step).toMatchObject({ traceId: server?.traceId, parentId: server?.spanId, kind: 1 });
    expect(step.startMs).toBeGreaterThanOrEqual(server?.startMs ?? Infinity);
    expect(step.endMs).toBeLessThanOrEqual(server?.endMs ?? 0);
  }
  expect(api.logLines.find(({ msg }) => msg === 'request')).toMatchObject({ trace_id: server?.traceId });
});

test('the trace of the customer is linked, and is never the parent', async () => {
  const { api, spans } = await traced();
  const own = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const traceparent = `00-${own.traceId}-${own.spanId}-01`;
  await api.get('from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z', { headers: { traceparent } });
  for (const malformed of [
    '00-0-0-01',
    `00-${'0'.repeat(32)}-${own.spanId}-01`,
    `ff-${own.traceId}-${own.spanId}-01`,
  ])
    await api.get('from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z', {
      headers: { traceparent: malformed },
    });
  const servers = (await spans()).filter(({ kind }) => kind === 2);
  expect(servers.map(({ links }) => links)).toEqual([[own], [], [], []]);
  for (const { parentId, traceId } of servers) {
    expect(parentId).toBe('');
    expect(traceId).not.toBe(own.traceId);
  }
});

test('a refusal has its code, and no span has a key or a query', async () => {
  const { api, spans } = await traced();
  await api.get('from=2026-09-01&to=nonsense');
  await api.get('from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z', { key: `${KEY}x` });
  await api.get('/other?plate=KA01');
  const all = await spans();
  const refused = all.filter(({ kind }) => kind === 2);
  expect(refused.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
    ['GET /transactions', 'VALIDATION_FAILED'],
    ['GET /transactions', 'INVALID_API_KEY'],
    ['GET', 'NOT_FOUND'],
  ]);
  for (const secret of [KEY, 'nonsense', 'KA01']) expect(JSON.stringify(all)).not.toContain(secret);
});
