import { describe, expect, test } from 'vitest';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery, SUCCESS } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { type PushMachine, sentIn } from '../../support/deliveries/push.ts';
import { CommitGate, deliveryOf, id, pushMachine } from '../../support/deliveries/push-machine.ts';

const SECOND_MS = 1_000;
const waiting = (transactionId: number) => newDelivery(transactionId, { prefix: PREFIX, position: 1 });

/** A machine whose commits of one name take as long as told, the first time. */
async function slowCommit(name: string) {
  const gate = new CommitGate();
  const m = await pushMachine({ onCommit: gate.onCommit });
  gate.close(name);
  const takes = async (ms: number): Promise<void> => {
    await m.clock.advance(ms);
    gate.open();
    await settle();
  };
  return { m, takes };
}

describe.each([
  [
    'a lease',
    'lease',
    async (m: PushMachine): Promise<void> => {
      await m.queue.enqueue([waiting(1)]);
      await m.clock.advance(0);
    },
  ],
  [
    'a commit that stores and leases',
    'enqueue',
    (m: PushMachine): void => void m.dispatcher.accept([waiting(1)]),
  ],
] as const)('what %s has given', (_, name, begin) => {
  test.each([3, 6, 40])('is not sent when that took %s s, and once under the next lease', async (seconds) => {
    const { m, takes } = await slowCommit(name);
    await begin(m);
    await takes(seconds * SECOND_MS);
    expect(m.sender.sent).toEqual([]);
    await m.clock.advance(20 * SECOND_MS);
    expect(m.sender.sent).toMatchObject([{ attempt: 1 }]);
    expect(await m.queue.find(waiting(1).id)).toMatchObject({
      state: 'delivered',
      attempts: [{ number: 1 }],
    });
  });

  test('is sent at once when that took less than half of the lease', async () => {
    const { m, takes } = await slowCommit(name);
    await begin(m);
    await takes(2_400);
    expect(m.sender.sent).toHaveLength(1);
  });
});

test('a lease that waits for another one is dated when its turn comes', async () => {
  const { m, takes } = await slowCommit('enqueue');
  void m.dispatcher.accept([waiting(1)]);
  void m.dispatcher.accept([waiting(2)]);
  await takes(4 * SECOND_MS);
  await m.clock.advance(SECOND_MS);
  expect(new Set(m.sender.sent.map(({ id: sent }) => sent))).toEqual(
    new Set([1, 2].map((n) => waiting(n).id)),
  );
  await m.clock.advance(10 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(2);
});

test('what may not be sent any more when its connection is ready is given back, and is no attempt', async () => {
  const m = await pushMachine();
  const send = m.sender.send.bind(m.sender);
  m.sender.send = ({ maySend }) => {
    m.sender.send = send;
    const sent = { ...sentIn(0, SUCCESS), answerMs: null };
    return new Promise((resolve) => {
      const ready = () => resolve({ ...sent, isWithheld: maySend?.() === false });
      m.clock.setTimer(2_500, ready); // for a name and a connection, in a process that is slow
    });
  };
  await m.push(501);
  await m.clock.advance(3 * SECOND_MS);
  expect(m.sender.sent).toMatchObject([{ attempt: 1 }]);
  expect((await deliveryOf(m, 501)).attempts).toHaveLength(1);
});

test('what is about to be sent when its receiver asks to wait is given back, and sent after that time', async () => {
  const m = await pushMachine();
  await m.dispatcher.accept(Array.from({ length: 20 }, (_, n) => waiting(n + 1)));
  await m.clock.advance(200); // the receiver is known as a quick one, so that it gets two at once
  const send = m.sender.send.bind(m.sender);
  const refused = { ok: false, kind: 'status', detail: '429' } as const;
  const answer = { status: 429, headers: { 'retry-after': '10' }, body: '' };
  let sends = 0;
  m.sender.send = (request) => {
    const isFirst = sends++ === 0;
    if (sends > 2) return send(request);
    return new Promise((resolve) => {
      const ended = () =>
        resolve(
          isFirst
            ? sentIn(5, { ...refused, answer })
            : { ...sentIn(0, SUCCESS), answerMs: null, isWithheld: request.maySend?.() === false },
        );
      m.clock.setTimer(isFirst ? 5 : 20, ended); // the second one takes longer to connect
    });
  };
  await m.dispatcher.accept([waiting(501), waiting(502)]);
  await m.clock.advance(9 * SECOND_MS);
  expect(sends).toBe(2);
  expect(await m.queue.find(waiting(501).id)).toMatchObject({ attempts: [{ number: 1 }] });
  expect(await m.queue.find(waiting(502).id)).toMatchObject({ state: 'pending', attempts: [] });
  await m.clock.advance(3 * SECOND_MS);
  expect(await m.queue.find(waiting(502).id)).toMatchObject({ state: 'delivered' });
});

test('a delivery is not claimed again while its outcome waits for a slow commit', async () => {
  const { m, takes } = await slowCommit('report');
  await m.push(501);
  await m.clock.advance(SECOND_MS);
  await m.queue.enqueue([waiting(2)]);
  await takes(20 * SECOND_MS);
  await m.clock.advance(SECOND_MS);
  expect(m.sender.sent.map(({ id: sent }) => sent)).toEqual([id(501), waiting(2).id]);
});
