import {
  END,
  EventStoreDBClient,
  PersistentSubscriptionExistsError,
  persistentSubscriptionToAllSettingsFromDefaults,
  streamNameFilter,
} from '@eventstore/db-client';
import { systemClock } from '../../src/base/clock.ts';
import type { Config } from '../../src/base/config/config.ts';
import { OPERATIONS_STREAM } from '../../src/domain/operations-events.ts';
import { TRANSACTION_STREAMS } from '../../src/domain/transaction-events.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { DELIVERIES_GROUP } from '../../src/push/fan-out/run-fan-out.ts';
import { type EngineEnv, freshId } from './engines.ts';
import type { Receivers } from './receivers.ts';
import { setUpWebhooks, type WebhookSetUp } from './webhook-sample.ts';

const AUTHOR = { actor: 'bench', command: 'bench' };

/** Starts webhooks on the engines, for accounts and transactions that no earlier run had. */
export async function startEngineWebhooks(
  dataDir: string,
  receivers: Receivers,
  env: EngineEnv,
): Promise<WebhookSetUp> {
  await passOverHistory(env.EVENTSTORE_URL);
  await beginHere(loadConfig({ FUEL_DATA_DIR: dataDir, ...env }, 'command'));
  const firstAccount = Math.floor(Date.now() / 1_000);
  return setUpWebhooks(dataDir, receivers, { env, firstAccount, firstTransaction: freshId() });
}

/**
 * The node may name the delivery log of an earlier run, which is gone, so a new one begins here. The view
 * begins here too, or a projector would build it from everything that other benchmarks recorded meanwhile.
 */
async function beginHere(config: Config): Promise<void> {
  const engines = await openEngines(config, systemClock);
  const store = engines.store();
  const { generation } = await engines.view().reset(await storeIdentity(store, systemClock), 0);
  await engines.view().apply([], { generation, position: await store.head() });
  const { id, startedAtMs } = await engines.queue().logId();
  const data = { log_id: id, started_at: formatDateTime(startedAtMs) };
  const event = newEvent({ type: 'DeliveryLogStarted', data }, AUTHOR, systemClock.now());
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: [event] }]);
  await engines.close();
}

/** Skips the events of other benchmarks, for which nothing is owed. Reading them all would take minutes. */
async function passOverHistory(url: string): Promise<void> {
  const client = EventStoreDBClient.connectionString(url);
  const settings = persistentSubscriptionToAllSettingsFromDefaults({ startFrom: END });
  const filter = streamNameFilter({ prefixes: [TRANSACTION_STREAMS] });
  try {
    await client.createPersistentSubscriptionToAll(DELIVERIES_GROUP, settings, { filter });
  } catch (error) {
    if (!(error instanceof PersistentSubscriptionExistsError)) throw error; // from an earlier run, and at the end of the log
  } finally {
    await client.dispose();
  }
}
