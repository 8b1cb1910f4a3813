import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { claimDeliveryLog } from '../../src/delivery/delivery-log.ts';
import { openSqliteDeliveryQueue } from '../../src/delivery/sqlite.ts';
import { openSqliteEventStore } from '../../src/event-store/sqlite.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function open() {
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock });
  onTestFinished(() => store.close());
  const log = () => {
    const queue = openSqliteDeliveryQueue({ path: join(temporaryFolder(), 'deliveries.db'), clock });
    onTestFinished(() => queue.close());
    return queue;
  };
  return { clock, store, log };
}

test('a delivery log that is begun is recorded once, however many processes start with it', async () => {
  const { clock, store, log } = open();
  const queue = log();
  await Promise.all([claimDeliveryLog(store, queue, clock), claimDeliveryLog(store, queue, clock)]);
  await claimDeliveryLog(store, queue, clock);
  const { id } = await queue.logId();
  expect(await store.readStream('operations')).toMatchObject([
    {
      type: 'DeliveryLogStarted',
      data: { log_id: id, started_at: new Date(clock.now()).toISOString() },
      metadata: { actor: 'system' },
    },
  ]);
});

test('another log than the one that was begun is refused, and the way out is named', async () => {
  const { clock, store, log } = open();
  await claimDeliveryLog(store, log(), clock);
  await expect(claimDeliveryLog(store, log(), clock)).rejects.toMatchObject({
    code: 'STORE_MISMATCH',
    message: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
  });
  expect(await store.readStream('operations')).toHaveLength(1);
});
