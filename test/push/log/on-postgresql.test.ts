import type { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { deliveryQueueModelContract } from '../../contracts/delivery-queue-model.contract.ts';
import { queueOnPostgres } from '../../support/deliveries/open-queue.ts';
import { describeWithPostgres, postgresql } from '../../support/engines/postgresql/postgresql.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const TABLES = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];

describeWithPostgres('the delivery log on PostgreSQL', () => {
  /** Emptied and used again: making the tables takes longer than a run. */
  let connection: PostgresConnection | undefined;

  deliveryQueueModelContract(
    async () => {
      connection ??= postgresql();
      const [used, clock] = [connection, new FakeClock()];
      const again = () => queueOnPostgres({ connection: used, clock });
      const queue = again();
      await queue.logId(); // makes the tables
      const sql = `TRUNCATE ${TABLES.map((name) => `${used.schema}.${name}`).join(', ')}`;
      await used.use(20_000, (run) => run({ sql }));
      return { queue, again, clock };
    },
    { numRuns: 12 },
  );
});
