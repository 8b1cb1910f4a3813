import { MemoryDeliveries } from '../../../src/engines/memory/queue/deliveries.ts';
import { openMemoryQueue } from '../../../src/engines/memory/queue/queue.ts';
import { deliveryLogContract } from '../../contracts/delivery-log.contract.ts';
import { deliveryLogCopyContract } from '../../contracts/delivery-log-copy.contract.ts';
import { deliveryQueueContract } from '../../contracts/delivery-queue.contract.ts';
import { deliveryQueueModelContract } from '../../contracts/delivery-queue-model.contract.ts';
import { deliveryQueueOperationsContract } from '../../contracts/delivery-queue-operations.contract.ts';
import { webhookHealthContract } from '../../contracts/webhook-health.contract.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const open = async () => {
  const clock = new FakeClock();
  const log = new MemoryDeliveries(clock);
  const again = () => openMemoryQueue(log, clock);
  return { queue: again(), again, clock };
};

deliveryQueueContract(open);
deliveryQueueOperationsContract(open);
webhookHealthContract(open);
deliveryLogContract(open);
deliveryLogCopyContract(open);
deliveryQueueModelContract(open);
