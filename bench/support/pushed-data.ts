import { openMasterKeys } from '../../src/accounts/master-key.ts';
import { systemClock } from '../../src/base/clock.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { setWebhook } from '../../src/operator/keys/set-webhook.ts';
import { repairDeliveries } from '../../src/operator/verify/repair-deliveries.ts';
import { createNameLookup } from '../../src/push/sender/name-lookup.ts';
import { resolveName } from '../../src/push/targets/resolve-name.ts';
import { parseKey } from '../../test/support/accounts/parse-key.ts';
import { verifyDeliveries } from '../../test/support/agreement/verify.ts';
import { buildData } from './build-data.ts';
import { progress } from './progress.ts';

const RETENTION_MS = 90 * 86_400_000;
const AUTHOR = { actor: 'bench', command: 'bench' };

/**
 * Fills a data directory with transactions, each owed to the one key of its account, and with their
 * deliveries. The webhooks were set before all of them.
 */
export async function buildPushedData(dataDir: string, lines: number): Promise<void> {
  const config = loadConfig({ FUEL_DATA_DIR: dataDir, FUEL_WEBHOOK_ALLOW_PRIVATE: 'true' }, 'command');
  const env = { clock: systemClock, environment: 'staging', retentionMs: RETENTION_MS } as const;
  const engines = await openEngines(config, systemClock);
  await engines.queue().logId(); // the delivery log begins before the transactions
  await buildData(dataDir, lines, async (store, customers) => {
    const writer = { store, clock: { now: () => 0 }, author: AUTHOR };
    const names = createNameLookup({ resolve: resolveName });
    const options = { allowPrivate: true, masterKeys: openMasterKeys(config), names };
    for (const { account, key } of customers) {
      const prefix = parseKey(key)?.prefix ?? '';
      await setWebhook(writer, { accountId: account.id, prefix }, { ...options, url: 'https://127.0.0.1/' });
    }
  });
  const context = { ...env, store: engines.store(), queue: engines.queue() };
  const { missing } = await verifyDeliveries({ ...context, logStartedAtMs: 0, settleMs: 0 });
  const say = progress(missing.length);
  const onProgress = (stored: number): void => say('deliveries', stored);
  await repairDeliveries(missing, { newLog: true }, { ...context, author: AUTHOR, onProgress });
  await engines.close();
}
