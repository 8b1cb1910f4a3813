import { expect, test } from 'vitest';
import { SerialWork } from '../../src/base/serial-work.ts';
import { settle } from '../support/deliveries/fake-alarm-clock.ts';

function pieces() {
  const began: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<string>>();
  const work = (name: string) => () => {
    began.push(name);
    const gate = Promise.withResolvers<string>();
    gates.set(name, gate);
    return gate.promise;
  };
  return { began, work, gate: (name: string) => gates.get(name) };
}

test('work starts when the work before it has ended, also where that failed', async () => {
  const serial = new SerialWork();
  const { began, work, gate } = pieces();
  const results = [serial.run(work('a')), serial.run(work('b')), serial.run(work('c'))];
  const settled = Promise.allSettled(results);
  await settle();
  expect(began).toEqual(['a']);
  gate('a')?.reject(new Error('a failed'));
  await settle();
  expect(began).toEqual(['a', 'b']);
  gate('b')?.resolve('b');
  await settle();
  expect(began).toEqual(['a', 'b', 'c']);
  gate('c')?.resolve('c');
  expect(await settled).toMatchObject([
    { status: 'rejected', reason: { message: 'a failed' } },
    { status: 'fulfilled', value: 'b' },
    { status: 'fulfilled', value: 'c' },
  ]);
});

test('whenIdle waits for all the work given so far, and does not fail with it', async () => {
  const serial = new SerialWork();
  const { work, gate } = pieces();
  const failing = serial.run(work('a'));
  void serial.run(work('b'));
  failing.catch(() => undefined);
  let isSettled = false;
  const settling = serial.whenIdle().then(() => {
    isSettled = true;
  });
  await settle();
  gate('a')?.reject(new Error('a failed'));
  await settle();
  expect(isSettled).toBe(false);
  gate('b')?.resolve('b');
  await settling;
});
