import { expect, test } from 'vitest';
import {
  IDENTITY,
  PROGRESS,
  toLogged,
  toProgress,
  toStored,
  toSummary,
} from '../../../src/engines/stored/delivery.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import { newProgress } from '../../../src/push/queue/next-state.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';

const delivery = newDelivery(1);
const row = {
  ...toStored<Omit<NewDelivery, 'record'>>(IDENTITY, delivery),
  ...toStored(PROGRESS, newProgress(delivery)),
};

test('what is stored of a delivery is read again, and what an engine leaves out is null', () => {
  expect(toProgress(row)).toEqual(newProgress(delivery));
  const { ended_at: _, lease: __, ...absent } = row as Record<string, unknown>;
  expect(toProgress(absent)).toEqual(newProgress(delivery));
});

test('a state that this version does not know is an error wherever a delivery is read', () => {
  const unknown = { ...row, state: 'lost' };
  for (const read of [toSummary, toLogged, toProgress])
    expect(() => read(unknown)).toThrow('a delivery is stored in the unknown state lost');
});
