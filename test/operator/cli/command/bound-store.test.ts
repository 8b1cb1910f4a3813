import { expect, test } from 'vitest';
import { FuelError } from '../../../../src/base/errors.ts';
import { boundStore } from '../../../../src/operator/cli/command/bound-store.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { named, record } from '../../../support/event-store/store-events.ts';

test('a store that is not the configuration’s takes and erases nothing', async () => {
  const { store } = openPushStores();
  await record(store, 'transaction-1', 'first');
  const bind = () => Promise.reject(new FuelError('STORE_MISMATCH', 'of another environment'));
  const bound = boundStore(store, bind);
  const append = { stream: 'transaction-2', expected: 'none', events: [named('second')] } as const;
  for (const change of [() => bound.append([append]), () => bound.erase('transaction-1')]) {
    await expect(change()).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
  }
  expect(await bound.readStreams(['transaction-1', 'transaction-2'])).toMatchObject([{ length: 1 }, []]);
  expect(await bound.isErased('transaction-1')).toBe(false);
});

test('nothing is recorded before the check has ended', async () => {
  const { store } = openPushStores();
  const { promise, resolve } = Promise.withResolvers<void>();
  const bound = boundStore(store, () => promise);
  const appended = bound.append([{ stream: 'transaction-2', expected: 'none', events: [named('second')] }]);
  const erased = bound.erase('transaction-3');
  await new Promise(setImmediate);
  expect(await store.head()).toBe(0);
  resolve();
  expect([await appended, await erased, await bound.isErased('transaction-3')]).toMatchObject([
    [{ kind: 'appended' }],
    undefined,
    true,
  ]);
});
