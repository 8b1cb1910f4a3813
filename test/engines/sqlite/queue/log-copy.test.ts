import { join } from 'node:path';
import { openSqliteDeliveryQueue } from '../../../../src/engines/sqlite/queue/queue.ts';
import { deliveryLogCopyContract } from '../../../contracts/delivery-log-copy.contract.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

deliveryLogCopyContract(async () => {
  const path = join(temporaryFolder(), 'deliveries.db');
  return { queue: openSqliteDeliveryQueue({ path, clock: new FakeClock() }) };
});
