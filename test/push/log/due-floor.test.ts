import { expect, onTestFinished, test } from 'vitest';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import { DELIVERY_STORE } from '../../../src/push/log/tables.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { claimOptions, newDelivery } from '../../support/deliveries/deliveries.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { replacing } from '../../support/interposed.ts';

test('what becomes due while a look is under way is found by the next look', async () => {
  const clock = new FakeClock();
  const tables = new MemoryStores().open(DELIVERY_STORE, clock);
  let afterReads: (() => Promise<unknown>) | undefined;
  const find: Tables['find'] = async (...given) => {
    const rows = await tables.find(...given);
    await afterReads?.();
    return rows;
  };
  const queue = openDeliveryLog(replacing(tables, { find }), clock);
  onTestFinished(() => queue.close());
  queue.changed.add({ notify: () => undefined }); // without a listener, each look begins at the start
  const late = newDelivery(1);
  const lanes = async () => (await queue.heads(claimOptions(5_000))).lanes;
  afterReads = async () => {
    afterReads = undefined;
    await queue.enqueue([late]);
  };
  expect(await lanes()).toEqual([]);
  expect(await lanes()).toMatchObject([{ prefix: late.prefix }]);
});
