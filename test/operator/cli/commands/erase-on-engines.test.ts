import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../../../support/engines/mongodb.ts';
import { startEventStoreDbDouble } from '../../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed, linesOf } from '../../../support/transactions/e2e-samples.ts';

describeWithMongodb('with engines and a master key', () => {
  it('a transaction is erased where there is no data directory, and once more', async () => {
    const double = await startEventStoreDbDouble();
    try {
      const { fuel, done, file, eventsOf } = commandLine(
        {
          EVENTSTORE_URL: double.url,
          MONGODB_URL: mongodbUrl(),
          MONGODB_DATABASE: freshDatabase(),
          FUEL_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
        },
        { hasStore: false },
      );
      await done('transaction', 'import', file('lines.jsonl', linesOf([confirmed(501)])));
      for (const _time of ['first', 'second']) {
        const { code, json, stderr } = await fuel(
          ...['transaction', 'erase', '501', '--reason', 'asked for', '--yes', '--json'],
        );
        expect([code, json, stderr]).toEqual([
          0,
          { id: 501, erased: true },
          expect.stringContaining('scavenge'),
        ]);
      }
      expect(await eventsOf('transaction-501')).toEqual([]);
      expect(existsSync(process.env.FUEL_DATA_DIR ?? '')).toBe(false);
    } finally {
      await double.stop();
    }
  });
});
