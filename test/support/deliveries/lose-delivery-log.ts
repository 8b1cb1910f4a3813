import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import type { ServiceProcess } from '../service/service-process.ts';

const COLLECTIONS = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];

/** Removes the delivery log of a service that is stopped, and nothing else, as an accident would. */
export async function loseDeliveryLog(service: ServiceProcess): Promise<void> {
  const { MONGODB_URL: url, MONGODB_DATABASE: database = 'fuel' } = service.operator.config.ofEngines;
  if (url === undefined) {
    for (const name of readdirSync(service.dataDir)) {
      if (name.startsWith('deliveries.db')) rmSync(join(service.dataDir, name));
    }
    return;
  }
  const client = new MongoClient(url);
  for (const name of COLLECTIONS) await client.db(database).dropCollection(name);
  await client.close();
}
