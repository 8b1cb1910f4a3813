import { expect, test } from 'vitest';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { sentIn } from '../../support/deliveries/push.ts';
import { deliveryOf, pushMachine, unavailable } from '../../support/deliveries/push-machine.ts';

const SECOND_MS = 1_000;
const waiting = (transactionId: number) => newDelivery(transactionId, { prefix: PREFIX, position: 1 });

/** A machine whose queue rejects one kind of commit while `failing` names it; notes when each was tried. */
async function failingMachine() {
  const outage = { failing: '', triedAtMs: [] as number[], onTry: () => {} };
  const m = await pushMachine({
    onCommit: (name, _args, commit) => {
      if (name !== outage.failing) return commit();
      outage.triedAtMs.push(m.clock.now());
      outage.onTry();
      return Promise.reject(unavailable());
    },
  });
  return { m, outage };
}

test('while its store is unavailable it looks again after 100 ms, then less and less often, at least every 5 s', async () => {
  const { m, outage } = await failingMachine();
  const startMs = m.clock.now();
  outage.failing = 'lease';
  await m.queue.enqueue([waiting(1)]);
  await m.clock.advance(17 * SECOND_MS);
  expect(outage.triedAtMs.map((atMs) => atMs - startMs)).toEqual([
    0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300,
  ]);
  outage.failing = '';
  await m.clock.advance(5 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
});

test('while the proxy fails nothing counts: deliveries stay due, and are sent when the wait is over', async () => {
  const m = await pushMachine();
  const untilMs = m.clock.now() + 4 * SECOND_MS;
  const send = m.sender.send.bind(m.sender);
  let withheld = 0;
  m.sender.proxyWaitMs = () => (withheld === 0 ? 0 : Math.max(0, untilMs - m.clock.now()));
  m.sender.send = async (request) => {
    if (m.clock.now() >= untilMs) return send(request);
    withheld += 1;
    const outcome = { ok: false, kind: 'proxy', detail: 'the proxy fails', answer: null } as const;
    return { ...sentIn(0, outcome), isWithheld: true };
  };
  await m.push(501);
  await m.clock.advance(3 * SECOND_MS);
  expect(withheld).toBe(1);
  expect(await deliveryOf(m, 501)).toMatchObject({ state: 'pending', attempts: [], attemptsInCycle: 0 });
  await m.push(502);
  await m.clock.advance(2 * SECOND_MS);
  expect(m.sender.sent[0]).toMatchObject({ attempt: 1, atMs: untilMs });
  for (const id of [501, 502]) expect(await deliveryOf(m, id)).toMatchObject({ state: 'delivered' });
});

test('what comes while a call fails does not make it try again at once', async () => {
  const { m, outage } = await failingMachine();
  const startMs = m.clock.now();
  outage.onTry = () => m.queue.changed.notify();
  outage.failing = 'lease';
  await m.queue.enqueue([waiting(1)]);
  await m.clock.advance(1_000);
  expect(outage.triedAtMs.map((atMs) => atMs - startMs)).toEqual([0, 100, 300, 700]);
});

test('the pauses start at 100 ms again after the store was available', async () => {
  const { m, outage } = await failingMachine();
  for (const transactionId of [1, 2]) {
    outage.failing = 'lease';
    outage.triedAtMs = [];
    const startMs = m.clock.now();
    await m.queue.enqueue([waiting(transactionId)]);
    await m.clock.advance(1_000);
    expect(outage.triedAtMs.map((atMs) => atMs - startMs)).toEqual([0, 100, 300, 700]);
    outage.failing = '';
    await m.clock.advance(2_000);
  }
  expect(m.sender.sent).toHaveLength(2);
});

test('what arrives exactly when the work ends is handled at once', async () => {
  const { m } = await failingMachine();
  const setTimer = m.clock.setTimer.bind(m.clock);
  for (let microtasks = 0; microtasks < 10; microtasks++) {
    let planned = false;
    m.clock.setTimer = (delayMs, run) => {
      const isSleep = delayMs > 1; // the rest are attempts and commits
      if (isSleep && planned) {
        planned = false;
        let moment = Promise.resolve();
        for (let passed = 0; passed < microtasks; passed++) moment = moment.then(() => undefined);
        void moment.then(() => m.queue.enqueue([waiting(501 + microtasks)]));
      }
      return setTimer(delayMs, run);
    };
    planned = true;
    m.queue.changed.notify();
    await settle();
    expect(planned).toBe(false);
    expect(m.sender.sent).toHaveLength(microtasks + 1);
    await m.clock.advance(10);
  }
});
