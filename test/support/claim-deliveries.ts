import { systemClock } from '../../src/clock.ts';
import type { DeliveryQueue } from '../../src/delivery/delivery-queue.ts';
import { claimOptions } from './deliveries.ts';

// Run as a process of its own: claims what is due, at most LIMIT, and prints the ids as a JSON array.
const [log, nowMs, limit] = process.argv.slice(2);
if (log === undefined) throw new Error('usage: claim-deliveries.ts LOG NOW_MS LIMIT');
const { path, url, database } = JSON.parse(log) as Record<string, string>;

async function claim(queue: DeliveryQueue): Promise<void> {
  const options = claimOptions(Number(nowMs), { holder: 'elsewhere', limit: Number(limit) });
  const claimed = await queue.claim(options);
  console.log(JSON.stringify(claimed.map(({ id }) => id)));
  await queue.close();
}

// Only the driver of the engine in question is loaded: the claiming process stands still for it.
if (path !== undefined) {
  const { openSqliteDeliveryQueue } = await import('../../src/delivery/sqlite.ts');
  await claim(openSqliteDeliveryQueue({ path, clock: systemClock }));
} else if (url !== undefined && database !== undefined) {
  const { openMongoDeliveryQueue } = await import('../../src/delivery/mongodb.ts');
  const { MongoConnection } = await import('../../src/mongodb/connection.ts');
  const connection = new MongoConnection({ url, database });
  await claim(openMongoDeliveryQueue({ connection, clock: systemClock }));
  await connection.close();
}
