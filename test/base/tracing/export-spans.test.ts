import { expect, onTestFinished, test, vi } from 'vitest';
import type { EndedSpan } from '../../../src/base/tracing/spans.ts';
import { isTracing, spanIdOf, trace, traceBatch, traceIdOf } from '../../../src/base/tracing/spans.ts';
import { startTracing } from '../../../src/base/tracing/start-tracing.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

const UUID = (n: number) => `0000000${n}-2fda-5d37-a08c-be18c88805e6`;

const spanOf = (n: number, more: Partial<EndedSpan> = {}): EndedSpan => ({
  traceId: traceIdOf(UUID(n)),
  spanId: spanIdOf(n),
  name: `span ${n}`,
  kind: 'internal',
  startedAtMs: 1_788_423_362_000.25,
  endedAtMs: 1_788_423_362_500.5,
  attributes: {},
  ...more,
});

async function tracing(endpoint: string, env: Readonly<Record<string, string>> = {}) {
  const lines: Record<string, unknown>[] = [];
  const config = loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...env }, 'command');
  const running = await startTracing(config, memoryLog(lines));
  onTestFinished(() => running.stop());
  return { ...running, lines };
}

test('without an endpoint no span is made', async () => {
  const running = await startTracing(loadConfig({}, 'command'), memoryLog([]));
  expect(isTracing()).toBe(false);
  trace(() => {
    throw new Error('made');
  });
  await running.stop();
});

test('a span arrives with its ids, times, attributes and links, and with the name of the service', async () => {
  const receiver = await startOtlpReceiver();
  const { stop } = await tracing(receiver.endpoint);
  const link = { traceId: traceIdOf(UUID(9)), spanId: spanIdOf(9) };
  const parent = spanOf(1, { links: [link] });
  const attributes = { 'http.request.method': 'POST', 'server.port': 443 };
  const child = spanOf(2, {
    traceId: parent.traceId,
    parentId: parent.spanId,
    kind: 'client',
    attributes,
    isError: true,
  });
  trace(() => [parent, child]);
  await stop();
  expect(receiver.spans).toMatchObject([
    { traceId: parent.traceId, spanId: parent.spanId, parentId: '', kind: 1, links: [link], isError: false },
    {
      traceId: parent.traceId,
      spanId: child.spanId,
      parentId: parent.spanId,
      kind: 3,
      attributes,
      isError: true,
    },
  ]);
  for (const { startMs, endMs, resource } of receiver.spans) {
    expect(startMs).toBeCloseTo(1_788_423_362_000.25, 2);
    expect(endMs).toBeCloseTo(1_788_423_362_500.5, 2);
    expect(resource).toMatchObject({ 'service.name': 'fuel-integration' });
  }
  expect(isTracing()).toBe(false);
});

test('a batch has its size and position, within the span of its command', async () => {
  const receiver = await startOtlpReceiver();
  const { stop } = await tracing(receiver.endpoint);
  const own = { traceId: traceIdOf(UUID(1)), spanId: spanIdOf(1) };
  traceBatch('import', { own }).end({});
  traceBatch('record lines', { parent: own }).end({ 'fuel.batch.size': 100, 'fuel.batch.position': 7 });
  await stop();
  expect(receiver.spans).toMatchObject([
    { ...own, name: 'import', parentId: '' },
    {
      traceId: own.traceId,
      parentId: own.spanId,
      attributes: { 'fuel.batch.size': 100, 'fuel.batch.position': 7 },
    },
  ]);
});

test('the sampler decides about whole traces, however late a span comes', async () => {
  const receiver = await startOtlpReceiver();
  const sampled = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' };
  const { stop } = await tracing(receiver.endpoint, sampled);
  const ids = Array.from({ length: 200 }, () => traceIdOf(crypto.randomUUID()));
  const root = (traceId: string) => spanOf(1, { traceId });
  trace(() => ids.map((traceId) => spanOf(2, { traceId, parentId: spanIdOf(1) })));
  trace(() => ids.map(root));
  await stop();
  const counts = Map.groupBy(receiver.spans, ({ traceId }) => traceId);
  expect(counts.size).toBeGreaterThan(50);
  expect(counts.size).toBeLessThan(150);
  for (const spans of counts.values()) expect(spans).toHaveLength(2);
});

test('always_off exports nothing', async () => {
  const receiver = await startOtlpReceiver();
  const { stop } = await tracing(receiver.endpoint, { OTEL_TRACES_SAMPLER: 'always_off' });
  trace(() => [spanOf(1)]);
  await stop();
  expect(receiver.requests).toEqual([]);
});

test('an unreachable collector costs one log line, and is used again when it is back', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '2000'); // within which it is tried again
  onTestFinished(() => void vi.unstubAllEnvs());
  const port = await lastingPort();
  const { lines } = await tracing(`http://127.0.0.1:${port}`);
  for (let n = 0; n < 3; n++) trace(() => Array.from({ length: 4_000 }, () => spanOf(1)));
  await until(() => lines.length > 0);
  expect(lines).toHaveLength(1);
  const receiver = await startOtlpReceiver(port);
  await until(() => {
    trace(() => [spanOf(2)]);
    return receiver.spans.some(({ name }) => name === 'span 2');
  });
  // A busy machine may be too late for the collector again.
  expect(lines.slice(0, 2).map(({ msg }) => msg)).toEqual([
    'spans are lost: the collector fails',
    'spans are exported again',
  ]);
});

test('a collector that never answers holds up the end for a second at most', async () => {
  const receiver = await startOtlpReceiver(0, true);
  const { stop } = await tracing(receiver.endpoint);
  trace(() => [spanOf(1)]);
  const startedAt = performance.now();
  await stop();
  expect(performance.now() - startedAt).toBeLessThan(3_000);
});
