import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { deliveryOf, pushMachine } from '../../support/deliveries/push-machine.ts';

test('a fault of the program fails the dispatcher under its own name, and nothing is claimed any more', async () => {
  let claims = 0;
  const m = await pushMachine({
    onCommit: (name, _args, commit) => {
      if (name !== 'claim') return commit();
      claims += 1;
      return Promise.reject(new TypeError('not a function'));
    },
  });
  const working = Symbol('working');
  expect(await Promise.race([m.dispatcher.failed, nextTurn(working)])).toBe(working);
  await m.queue.enqueue([newDelivery(1, { prefix: PREFIX, position: 1 })]);
  await m.scheduler.advance(60_000);
  await expect(m.dispatcher.failed).rejects.toThrow(new TypeError('not a function'));
  expect(claims).toBe(1);
});

test('an outcome that can be recorded in no form fails the dispatcher', async () => {
  const m = await pushMachine({
    onCommit: (name, _args, commit) =>
      name === 'report' ? Promise.reject(new TypeError('not a function')) : commit(),
  });
  await m.push(501);
  await m.scheduler.advance(10);
  await expect(m.dispatcher.failed).rejects.toThrow(new TypeError('not a function'));
});

test('a fault of the sender fails that attempt alone, and it is tried again in its time', async () => {
  const m = await pushMachine();
  const send = m.sender.send.bind(m.sender);
  let faults = 0;
  m.sender.send = (request) =>
    faults++ === 0 ? Promise.reject(new TypeError('no such socket')) : send(request);
  await m.push(501);
  await m.scheduler.advance(10);
  expect(await deliveryOf(m, 501)).toMatchObject({
    state: 'pending',
    attempts: [{ number: 1, outcome: { ok: false, kind: 'protocol', detail: 'TypeError: no such socket' } }],
  });
  await m.scheduler.advance(40_000);
  expect(await deliveryOf(m, 501)).toMatchObject({ state: 'delivered', attemptsInCycle: 2 });
});
