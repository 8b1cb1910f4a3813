import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import { DELIVERY_STORE } from '../../../src/push/log/tables.ts';
import { boundedReadsContract } from '../../contracts/bounded-reads.contract.ts';
import { deliveryLogContract } from '../../contracts/delivery-log.contract.ts';
import { deliveryQueueContract } from '../../contracts/delivery-queue.contract.ts';
import { deliveryQueueModelContract } from '../../contracts/delivery-queue-model.contract.ts';
import { deliveryQueueOperationsContract } from '../../contracts/delivery-queue-operations.contract.ts';
import { deliverySignalContract } from '../../contracts/delivery-signal.contract.ts';
import { claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { queueInFile, queueInMemory } from '../../support/deliveries/open-queue.ts';
import { onEachTables } from '../../support/engines/each-tables.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const openWith = (openQueue: (clock: FakeClock) => ReturnType<typeof queueInFile>) => {
  const clock = new FakeClock();
  const again = () => openQueue(clock);
  return { queue: again(), again, clock };
};

describe('the delivery log', () => {
  onEachTables((empty) => {
    const open = async () => {
      const stores = empty();
      return openWith((clock) => openDeliveryLog(stores.open(DELIVERY_STORE), clock));
    };
    deliveryQueueContract(open);
    deliveryQueueOperationsContract(open);
    deliveryLogContract(open);
    boundedReadsContract(open);
  });
});

describe('the delivery log in memory', () => {
  deliveryQueueModelContract(async () => {
    const stores = new MemoryStores();
    return openWith((clock) => queueInMemory(stores, clock));
  });
});

describe('the delivery log in a file', () => {
  deliverySignalContract(async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    return openWith((clock) => queueInFile({ path, clock }));
  });

  test('keeps what was committed when it is opened again', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    const clock = new FakeClock();
    const first = queueInFile({ path, clock });
    const { startedAtMs } = await first.logId();
    const claimed = await first.enqueue([newDelivery(1)], claimOptions(1_000));
    await first.report(claimed.map((entry) => delivered(entry, 1_000)));
    const before = await first.find(newDelivery(1).id);
    await first.close();
    clock.advance(1_000);
    const second = queueInFile({ path, clock });
    onTestFinished(() => second.close());
    expect(await second.find(newDelivery(1).id)).toEqual(before);
    expect((await second.logId()).startedAtMs).toBe(startedAtMs);
  });
});
