import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { verifyNight } from '../../../src/operator/serve/nightly.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';

async function night(engines: Engines, signal = new AbortController().signal) {
  const config = loadConfig(process.env, 'command');
  return verifyNight({ engines, config, clock: systemClock, log: silentLog }, signal);
}

test('what was removed behind the back of the service is there again after the night', async () => {
  const { account, append, withEngines, done, fuel } = commandLine();
  const { FUEL_DATA_DIR } = loadConfig(process.env, 'command');
  await withEngines((engines) => storeIdentity(engines.store(), systemClock));
  await withEngines((engines) => claimDeliveryLog(engines.store(), engines.queue(), systemClock));
  await account(opened(), keyIssued(), webhookSet());
  for (const id of [1, 2, 3]) {
    await append(`transaction-${id}`, [confirmed(id, { created_at: '2026-09-03T08:00:00.000Z' })]);
  }
  await done('projection', 'rebuild', 'transactions');
  await fuel('verify', '--repair');
  expect((await fuel('verify')).code).toBe(0);
  await withEngines((engines) => engines.view().replace(2, []));
  const db = new DatabaseSync(join(FUEL_DATA_DIR, 'deliveries.db'));
  db.exec('DELETE FROM deliveries WHERE transaction_id IN (1, 3)');
  db.close();
  const accounts = new DatabaseSync(join(FUEL_DATA_DIR, 'accounts.db'));
  accounts.exec('DELETE FROM account_keys');
  accounts.close();
  expect((await fuel('verify')).code).toBe(1);
  expect(await withEngines((engines) => night(engines))).toEqual({
    accounts: 1,
    view: 1,
    deliveries: 2,
    damage: [],
  });
  expect((await fuel('verify')).code).toBe(0);
  const { lines } = await fuel('audit', '--type', 'AgreementRepaired', '--newest', '--limit', '3', '--json');
  expect(lines).toMatchObject([
    { actor: 'system', command: 'nightly verification', data: { what: 'deliveries', repaired: 2 } },
    { actor: 'system', data: { what: 'view', repaired: 1 } },
    { actor: 'system', data: { what: 'accounts', repaired: 1 } },
  ]);
});

test('a night that is asked to stop says so', async () => {
  const { withEngines } = commandLine();
  await withEngines((engines) => storeIdentity(engines.store(), systemClock));
  const stopped = AbortSignal.abort(new Error('asked to stop'));
  await expect(withEngines((engines) => night(engines, stopped))).rejects.toThrow('asked to stop');
});
