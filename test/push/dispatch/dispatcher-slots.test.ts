import { describe, expect, test } from 'vitest';
import { keyIssued, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { answered, newDelivery, SUCCESS, TIMEOUT } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import type { PushMachine } from '../../support/deliveries/push.ts';
import { CommitGate, deliveryOf, id, pushMachine } from '../../support/deliveries/push-machine.ts';

const SECOND_MS = 1_000;
const NEW_LANE = 1;
const ALL_SLOTS = 512;
const waiting = (transactionId: number, prefix = PREFIX) =>
  newDelivery(transactionId, { prefix, position: 1 });
const range = (count: number, first = 1) => Array.from({ length: count }, (_, index) => first + index);

test('a lane has its slots back when its receiver has answered, however slow the commit of the outcomes', async () => {
  const gate = new CommitGate();
  const m = await pushMachine({ onCommit: gate.onCommit });
  gate.close('report');
  await m.dispatcher.accept(range(NEW_LANE).map((transactionId) => waiting(transactionId)));
  await m.clock.advance(15);
  expect([m.sender.sent.length, gate.waiting]).toEqual([NEW_LANE, 1]);
  await m.dispatcher.accept([waiting(100)]);
  await settle();
  expect(m.sender.sent).toHaveLength(NEW_LANE + 1);
  gate.open();
});

describe('lanes that wait for the same host', () => {
  const OTHER = 'otherOther';

  test('get the room that becomes free before new deliveries of a lane whose turn is later', async () => {
    const gate = new CommitGate();
    const events = [keyIssued({ prefix: OTHER }), webhookSet({ prefix: OTHER })];
    const m = await pushMachine({ events, onCommit: gate.onCommit });
    m.sender.answer = () => ({ outcome: answered(503), afterMs: 100 }); // so that the host has room for one
    await m.dispatcher.accept([waiting(1)]);
    await m.queue.enqueue([waiting(2, OTHER)]);
    await settle();
    gate.close('report');
    await m.clock.advance(150); // the first attempt has ended, and its outcome is not recorded
    await m.dispatcher.accept([waiting(3)]);
    await settle();
    gate.open();
    await m.clock.advance(10);
    expect(m.sender.sent.map(({ id: sent }) => sent)).toEqual([waiting(1).id, waiting(2, OTHER).id]);
    await m.clock.advance(150);
    expect(m.sender.sent.map(({ id: sent }) => sent)).toContain(waiting(3).id);
  });

  test('do not have the queue looked at whenever another delivery of theirs becomes due', async () => {
    const m = await pushMachine();
    m.sender.answer = () => 'never';
    await m.dispatcher.accept([waiting(1)]);
    const later = range(100).map((n) => ({
      ...waiting(100 + n),
      createdAtMs: m.clock.now() + SECOND_MS + n,
    }));
    await m.queue.enqueue([waiting(2), ...later]);
    const heads = m.queue.heads.bind(m.queue);
    let looks = 0;
    m.queue.heads = (options) => {
      looks += 1;
      return heads(options);
    };
    await m.clock.advance(SECOND_MS + 100);
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThan(15);
  });
});

describe('the slots of a process', () => {
  const PREFIXES = range(20).map((n) => `lane${String(n).padStart(6, '0')}`);
  const NEW_PREFIXES = range(20).map((n) => `new${String(n).padStart(7, '0')}`);

  /** Twenty webhooks, each with a host of its own, that have answered often enough for 32 attempts at once, and twenty new ones. */
  async function provenMachine(): Promise<PushMachine> {
    const events = [...PREFIXES, ...NEW_PREFIXES].flatMap((prefix) => [
      keyIssued({ prefix }),
      webhookSet({ prefix, url: `https://${prefix.toLowerCase()}.example/hook` }),
    ]);
    const m = await pushMachine({ events });
    m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 20 });
    const WARM_UP = range(120);
    await m.dispatcher.accept(WARM_UP.flatMap((n) => PREFIXES.map((prefix) => waiting(n, prefix))));
    const all = WARM_UP.length * PREFIXES.length;
    for (let steps = 0; m.sender.sent.length < all && steps < 100; steps++) await m.clock.advance(10);
    expect(m.sender.sent).toHaveLength(all);
    await m.clock.advance(20); // not longer: after a pause each host is unknown again
    m.sender.sent.length = 0;
    m.sender.answer = () => 'never';
    return m;
  }

  test('are never exceeded by deliveries to many webhooks that are stored together', async () => {
    const m = await provenMachine();
    for (const transactionId of range(25, 200)) {
      await m.dispatcher.accept(PREFIXES.map((prefix) => waiting(transactionId, prefix)));
    }
    await settle();
    expect(m.sender.sent).toHaveLength(500);
    await m.dispatcher.accept(
      range(3, 301).flatMap((transactionId) => NEW_PREFIXES.map((p) => waiting(transactionId, p))),
    );
    await settle();
    expect(m.sender.sent).toHaveLength(ALL_SLOTS);
  });

  test('are not looked for while all are taken, and are used again as soon as attempts end', async () => {
    const m = await provenMachine();
    const [send, heads] = [m.sender.send.bind(m.sender), m.queue.heads.bind(m.queue)];
    let [underWay, looksWhileFull] = [0, 0];
    m.sender.send = async (request) => {
      underWay += 1;
      return send(request).finally(() => {
        underWay -= 1;
      });
    };
    m.queue.heads = (options) => {
      if (underWay === ALL_SLOTS) looksWhileFull += 1;
      return heads(options);
    };
    m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 100 });
    await m.dispatcher.accept(
      range(40, 200).flatMap((transactionId) => PREFIXES.map((p) => waiting(transactionId, p))),
    );
    await settle();
    expect(m.sender.sent).toHaveLength(ALL_SLOTS);
    await m.clock.advance(SECOND_MS);
    expect(m.sender.sent).toHaveLength(40 * PREFIXES.length);
    expect(looksWhileFull).toBe(0);
  });

  test('are granted to one commit at a time, so that two that overlap never exceed a webhook’s own', async () => {
    const gate = new CommitGate();
    const m = await pushMachine({ onCommit: gate.onCommit });
    m.sender.answer = () => 'never';
    gate.close('enqueue');
    void m.dispatcher.accept(range(6).map((n) => waiting(n)));
    void m.dispatcher.accept(range(6, 7).map((n) => waiting(n)));
    await m.queue.enqueue(range(6, 13).map((n) => waiting(n)));
    await settle();
    gate.open();
    await settle();
    expect(m.sender.sent).toHaveLength(NEW_LANE);
  });

  test('are taken by no delivery whose account has no access, or whose key is not known', async () => {
    const m = await pushMachine();
    const access = (type: 'IntegrationEnabled' | 'IntegrationDisabled') =>
      ({ type, data: { account_id: 7 } }) as const;
    await m.account(access('IntegrationDisabled'));
    await m.dispatcher.accept(range(3 * NEW_LANE).map((n) => waiting(n)));
    await m.dispatcher.accept(range(3 * NEW_LANE).map((n) => waiting(n, 'noSuchKey1')));
    await m.clock.advance(100);
    expect(await countByState(m.queue)).toMatchObject({ pending: 6 * NEW_LANE });
    await m.account(access('IntegrationEnabled'));
    await m.clock.advance(100);
    expect(m.sender.sent).toHaveLength(3 * NEW_LANE);
  });
});

describe('an attempt', () => {
  test('is in the delivery log with its start and its duration', async () => {
    const m = await pushMachine();
    m.sender.answer = () => ({ outcome: TIMEOUT, afterMs: 500 });
    await m.push(501);
    const startMs = m.clock.now();
    await m.clock.advance(32 * SECOND_MS);
    expect((await deliveryOf(m, 501)).attempts).toEqual([
      { cycle: 1, number: 1, startedAtMs: startMs, durationMs: 500, othersUnderWay: 0, outcome: TIMEOUT },
      {
        cycle: 1,
        number: 2,
        startedAtMs: startMs + 30_500,
        durationMs: 500,
        othersUnderWay: 0,
        outcome: TIMEOUT,
      },
    ]);
  });

  test('is one line in the service’s log with its outcome and what happens next', async () => {
    const m = await pushMachine();
    m.sender.answer = () => ({ outcome: TIMEOUT, afterMs: 500 });
    await m.push(501);
    const startMs = m.clock.now();
    await m.clock.advance(SECOND_MS);
    m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 5 });
    await m.clock.advance(31 * SECOND_MS);
    const lines = m.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const common = { delivery: id(501), key_prefix: PREFIX, transaction: 501, cycle: 1 };
    const retry = { next: 'retry', due_at_ms: startMs + 30_500 };
    expect(lines.filter(({ msg }) => msg === 'delivery attempted')).toMatchObject([
      { ...common, attempt: 1, answer: 'timeout: no answer in 500 ms', duration_ms: 500, ...retry },
      { ...common, attempt: 2, answer: '204', duration_ms: 5, next: 'delivered' },
    ]);
  });

  test('that was the last leaves its answer as the reason of the failure', async () => {
    const m = await pushMachine();
    m.sender.answer = ({ attempt }) => ({
      outcome: attempt === 3 ? TIMEOUT : answered(503),
      afterMs: 10,
    });
    await m.push(501);
    await m.clock.advance(200 * SECOND_MS);
    expect((await deliveryOf(m, 501)).reason).toBe(
      'attempt 3, the last, failed: timeout: no answer in 500 ms',
    );
  });

  test('that cannot be signed is not made: the delivery ends with the reason, and others continue', async () => {
    const m = await pushMachine();
    m.unsigned = 'the secret cannot be decrypted';
    await m.push(501);
    await m.clock.advance(10);
    expect(await deliveryOf(m, 501)).toMatchObject({
      state: 'failed',
      attempts: [],
      reason: 'it could not be signed: the secret cannot be decrypted',
    });
    expect((await m.queue.health(PREFIX)).failedInARow).toBe(0);
    m.unsigned = undefined;
    await m.push(502);
    expect(m.sender.sent).toMatchObject([{ id: id(502) }]);
  });
});
