import { describe, expect, test } from 'vitest';
import { deliverySpans, type TracedOutcome } from '../../src/push/delivery-spans.ts';
import type { AttemptOutcome, DeliveryReport } from '../../src/push/queue/delivery.ts';
import { answered, newDelivery, SUCCESS, TIMEOUT } from '../support/deliveries/deliveries.ts';

const COMMAND = '66887070-2fda-5d37-a08c-be18c88805e6';
const claim = { id: 'x', prefix: 'aaaaaaaaaa', transactionId: 501, leaseToken: 'lease' };

function outcomeOf(report: Partial<DeliveryReport> & Pick<DeliveryReport, 'kind'>, cycle = 1): TracedOutcome {
  const delivery = { ...newDelivery(501), cycle };
  const url = 'https://hook.example/secret-path?token=pepper';
  return {
    delivery,
    report: { ...claim, ...report } as DeliveryReport,
    url,
    address: '192.0.2.1',
    nowMs: 9_000,
  };
}

const attempt = (number: number, outcome: AttemptOutcome, cycle = 1) => ({
  cycle,
  number,
  startedAtMs: 2_000 * number,
  durationMs: 500,
  othersUnderWay: 0,
  outcome,
});

const spansOf = (
  kind: 'delivered' | 'retry' | 'failed',
  number: number,
  outcome: AttemptOutcome,
  cycle = 1,
) => deliverySpans(outcomeOf({ kind, attempt: attempt(number, outcome, cycle) } as never, cycle), COMMAND);

describe('a delivery', () => {
  const { id } = newDelivery(501);
  const traceId = id.replaceAll('-', '');

  test('is a trace with its id: a span for each attempt, and the root once it has ended', () => {
    const [first, ...others] = spansOf('retry', 1, answered(503));
    expect(others).toEqual([]);
    const [second, root] = spansOf('delivered', 2, SUCCESS);
    expect(root).toMatchObject({
      traceId,
      name: 'deliver transaction.confirmed',
      kind: 'internal',
      isError: false,
      startedAtMs: 1_000,
      endedAtMs: 4_500,
      attributes: { 'fuel.delivery.id': id, 'fuel.delivery.state': 'delivered', 'fuel.delivery.attempts': 2 },
      links: [{ traceId: COMMAND.replaceAll('-', '') }],
    });
    expect(root).not.toHaveProperty('parentId');
    for (const span of [first, second])
      expect(span).toMatchObject({ traceId, parentId: root?.spanId, name: 'POST', kind: 'client' });
    expect(first).toMatchObject({
      startedAtMs: 2_000,
      endedAtMs: 2_500,
      isError: true,
      attributes: {
        'http.request.method': 'POST',
        'server.address': 'hook.example',
        'server.port': 443,
        'http.response.status_code': 503,
        'error.type': '503',
        'network.peer.address': '192.0.2.1',
      },
    });
    expect(first?.attributes).not.toHaveProperty('http.request.resend_count');
    expect(second).toMatchObject({
      isError: false,
      attributes: { 'http.response.status_code': 204, 'http.request.resend_count': 1 },
    });
  });

  test('has the same span ids whenever they are made, and others in each cycle', () => {
    const ids = (cycle: number) => spansOf('delivered', 1, SUCCESS, cycle).map(({ spanId }) => spanId);
    expect(ids(1)).toEqual(ids(1));
    expect(new Set([...ids(1), ...ids(2)]).size).toBe(4);
    for (const spanId of ids(1)) expect(spanId).toMatch(/^[0-9a-f]{16}$/);
  });

  test('that ends without an attempt is a root alone, and one that is given back is nothing', () => {
    const ended = deliverySpans(
      outcomeOf({ kind: 'failed', attempt: null, reason: 'the key was switched off' }),
    );
    expect(ended).toMatchObject([{ endedAtMs: 9_000, isError: true, links: [] }]);
    expect(deliverySpans(outcomeOf({ kind: 'released' }))).toEqual([]);
  });

  test('names the kind of a failure without an answer', () => {
    const [span] = spansOf('retry', 1, TIMEOUT);
    expect(span?.attributes).toMatchObject({ 'error.type': 'timeout' });
    expect(span?.attributes).not.toHaveProperty('http.response.status_code');
  });

  test('shows neither path nor query of the URL, nor words of the receiver or the record', () => {
    const words: AttemptOutcome = {
      ok: false,
      kind: 'status',
      detail: 'Jo Driver',
      answer: { status: 500, headers: { a: 'Jo Driver' }, body: 'Jo Driver' },
    };
    const text = JSON.stringify(spansOf('failed', 3, words));
    for (const secret of ['secret-path', 'pepper', 'Jo Driver', 'photos']) expect(text).not.toContain(secret);
  });
});
