import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { readToEnd } from '../../src/event-store/reads.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { replacing } from '../support/interposed.ts';

test('a read to the end of a log that cannot be reached rejects, and does not wait as a subscription would', async () => {
  const { store } = openPushStores();
  const unavailable = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'no server answers'));
  const away = replacing(store, { head: unavailable });
  const read = Array.fromAsync(readToEnd(away, { prefixes: [], after: 0 }));
  await expect(read).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});
