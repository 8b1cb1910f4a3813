import { expect, onTestFinished, test } from 'vitest';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { OK } from '../../support/deliveries/push.ts';
import { pushMachine } from '../../support/deliveries/push-machine.ts';

/** A machine, and the turn of the event loop in which each commit of a name began. */
async function machine(name: string) {
  let turn = 0;
  let immediate: NodeJS.Immediate;
  const count = (): void => {
    turn += 1;
    immediate = setImmediate(count);
  };
  count();
  onTestFinished(() => clearImmediate(immediate));
  const turns: number[] = [];
  const m = await pushMachine({
    onCommit: (commit, _args, run) => {
      if (commit === name) turns.push(turn);
      return run();
    },
  });
  m.sender.answer = () => ({ outcome: OK, afterMs: 60_000 });
  return { m, turns };
}

const many = (count: number, prefix: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => newDelivery(n + 1, { prefix: prefix(n), position: 1 }));

test('new deliveries are stored a hundred at a time, each in a turn of the event loop', async () => {
  const { m, turns } = await machine('enqueue');
  await m.dispatcher.accept(many(250, () => PREFIX));
  expect(new Set(turns).size).toBe(3);
});

test('due deliveries are claimed a hundred at a time, each in a turn of the event loop', async () => {
  const { m, turns } = await machine('claim');
  await m.queue.enqueue(many(300, (n) => `lane${n}`));
  await m.scheduler.advance(0);
  expect(turns.length).toBeGreaterThan(2);
  expect(new Set(turns).size).toBe(turns.length);
});
