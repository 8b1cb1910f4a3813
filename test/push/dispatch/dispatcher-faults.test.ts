import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { pushMachine } from '../../support/deliveries/push-machine.ts';

test('a fault of the program fails the dispatcher under its own name, and nothing is claimed any more', async () => {
  let [claims, isBroken] = [0, false];
  const m = await pushMachine({
    onCommit: (name, _args, commit) => {
      if (name !== 'claim' || !isBroken) return commit();
      claims += 1;
      return Promise.reject(new TypeError('not a function'));
    },
  });
  const working = Symbol('working');
  expect(await Promise.race([m.dispatcher.failed, nextTurn(working)])).toBe(working);
  isBroken = true;
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
