import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StartGate } from '../../../src/push/sender/start-gate.ts';

test('eight start in a turn, the others in later turns, in their order', async () => {
  const gate = new StartGate();
  const started: number[] = [];
  for (let index = 0; index < 20; index++) void gate.pass().then(() => started.push(index));
  await Promise.resolve();
  expect(started).toHaveLength(8);
  await nextTurn();
  expect(started).toHaveLength(16);
  await nextTurn();
  expect(started).toEqual(Array.from({ length: 20 }, (_, index) => index));
});

test('after a turn in which none had to wait eight may start again', async () => {
  const gate = new StartGate();
  for (let turn = 0; turn < 3; turn++) {
    let started = 0;
    for (let index = 0; index < 8; index++) void gate.pass().then(() => started++);
    await Promise.resolve();
    expect(started).toBe(8);
    await nextTurn();
    await nextTurn();
  }
});
