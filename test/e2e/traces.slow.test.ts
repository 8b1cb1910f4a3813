import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { traceSvg } from '../support/trace-picture.ts';
import { until } from '../support/waiting.ts';

const ACCOUNT = 1;
/** The file of the picture in the documents, which `npm run docs:trace` draws. */
const PICTURE = process.env.FUEL_TEST_TRACE_PICTURE;

const traceIdOf = (id: string) => id.replaceAll('-', '');
const roots = ({ spans }: OtlpReceiver) => spans.filter(({ name }) => name.startsWith('deliver '));
const attemptsOf = (spans: readonly ReceivedSpan[], id: string) =>
  spans
    .filter(({ traceId, kind }) => traceId === traceIdOf(id) && kind === 3)
    .toSorted((a, b) => a.startMs - b.startMs);

async function traced(collector: OtlpReceiver) {
  const push = await PushService.start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint });
  return { push, customer: await push.customer(ACCOUNT) };
}

test('a delivery with a retry is one trace, with what delivery show says of its attempts', async () => {
  const collector = await startOtlpReceiver();
  const { push, customer } = await traced(collector);
  const { path, prefix, secret, key } = customer;
  let requests = 0;
  push.receiver.answer(path, (response) => void response.writeHead(++requests === 1 ? 503 : 200).end());
  await push.push(ACCOUNT);
  await push.settled(ACCOUNT, 'delivered');
  await until(() => roots(collector).length === 1);
  const [root] = roots(collector);
  const [{ id }] = await push.list('--key', prefix);
  const shown = await push.show(id);
  expect(root).toMatchObject({
    traceId: traceIdOf(id),
    parentId: '',
    name: `deliver ${shown.type}`,
    attributes: { 'fuel.delivery.state': 'delivered', 'fuel.delivery.attempts': shown.attempts.length },
  });
  expect(root?.links).toHaveLength(1);
  const spans = attemptsOf(collector.spans, id);
  expect(spans).toHaveLength(shown.attempts.length);
  for (const [index, attempt] of shown.attempts.entries()) {
    expect(spans[index]).toMatchObject({
      parentId: root?.spanId,
      isError: attempt.status !== 200,
      attributes: { 'http.response.status_code': attempt.status, 'network.peer.address': '127.0.0.1' },
    });
    expect(spans[index]?.startMs).toBeCloseTo(Date.parse(attempt.at), 0);
    const durationMs = (spans[index]?.endMs ?? 0) - (spans[index]?.startMs ?? 0);
    expect(Math.round(durationMs)).toBe(attempt.duration_ms);
  }
  const line = await push.service.logged(({ msg }) => msg === 'delivery attempted');
  expect(line).toMatchObject({ trace_id: traceIdOf(id) });
  const text = JSON.stringify(collector.spans);
  for (const hidden of [secret, key, path]) expect(text).not.toContain(hidden);
  const names = new Set(collector.spans.map(({ name }) => name));
  for (const name of ['fan out events', 'projector handles events']) expect([...names]).toContain(name);
  if (PICTURE !== undefined)
    writeFileSync(PICTURE, traceSvg([...(root === undefined ? [] : [root]), ...spans]));
  expect(await push.service.stop()).toBe(0);
});

test('after a kill there are as many spans as attempts, and none twice', async () => {
  const collector = await startOtlpReceiver();
  const { push, customer } = await traced(collector);
  push.receiver.answer(customer.path, answerWith(503));
  await push.push(ACCOUNT, 5);
  await until(() => collector.spans.filter(({ kind }) => kind === 3).length >= 5);
  await push.service.kill();
  push.receiver.answer(customer.path, answerWith(200));
  await push.service.start();
  await push.settled(ACCOUNT, 'delivered', 5);
  await until(() => roots(collector).length === 5);
  const deliveries = await push.list('--key', customer.prefix);
  for (const { id } of deliveries) {
    const { attempts } = await push.show(id);
    const spans = attemptsOf(collector.spans, id);
    expect(spans).toHaveLength(attempts.length);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(attempts.length);
  }
});
