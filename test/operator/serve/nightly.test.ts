import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Log } from '../../../src/base/log.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { openSqliteCoordination } from '../../../src/engines/sqlite/coordination.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { startNightly, verifyInThread } from '../../../src/operator/serve/nightly.ts';
import { threadsOfCommand } from '../../../src/operator/serve/threads.ts';
import type { Repaired } from '../../../src/operator/verify/verify-last-days.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';

const HOUR_MS = 3_600_000;

function start() {
  const clock = new FakeClock();
  const coordination = openSqliteCoordination({ path: join(temporaryFolder(), 'control.db'), clock });
  onTestFinished(() => coordination.close());
  const nights: (() => Promise<void>)[] = [];
  const expressions: string[] = [];
  const warnings: string[] = [];
  const log = { warn: (_: unknown, message: string) => void warnings.push(message) } as unknown as Log;
  const repaired: unknown[] = [];
  const destroyed: string[] = [];
  const process = (holder: string, verify: (signal: AbortSignal) => Promise<Repaired>) =>
    startNightly({
      ...{ coordination, holder, log, verify },
      onRepaired: (counts) => void repaired.push(counts),
      schedule: (expression, work) => {
        expressions.push(expression);
        nights.push(work);
        return { destroy: () => void destroyed.push(holder) };
      },
    });
  return { clock, coordination, nights, expressions, warnings, repaired, destroyed, process };
}

test('every night one of the processes verifies, at a minute after three', async () => {
  const { clock, nights, expressions, repaired, process } = start();
  let runs = 0;
  const verify = async () => ({ view: ++runs, deliveries: 0, damage: [] });
  process('one', verify);
  process('other', verify);
  for (const expression of expressions) expect(expression).toMatch(/^([0-9]|[1-5][0-9]) 3 \* \* \*$/);
  await nights[0]?.();
  clock.advance(HOUR_MS);
  await nights[1]?.();
  expect(repaired).toEqual([{ view: 1, deliveries: 0, damage: [] }]);
  clock.advance(23 * HOUR_MS);
  await nights[1]?.();
  expect(repaired).toHaveLength(2);
});

test('a night that fails is left to the next one', async () => {
  const { nights, warnings, repaired, process } = start();
  process('one', () => Promise.reject(new Error('unavailable')));
  await nights[0]?.();
  expect([repaired, warnings]).toEqual([[], ['the last two days could not be verified; trying next night']]);
});

test('a verification under way is stopped with the process, without a warning', async () => {
  const { nights, warnings, process } = start();
  const begun = Promise.withResolvers<void>();
  const nightly = process('one', (signal) => {
    begun.resolve();
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  const night = nights[0]?.();
  await begun.promise;
  await nightly.stop();
  await night;
  expect(warnings).toEqual([]);
});

test('a process that stops plans no further night, and has stopped when the one under way has', async () => {
  const { nights, destroyed, repaired, process } = start();
  const [begun, finish] = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<void>()];
  const nightly = process('one', async (signal) => {
    begun.resolve(signal);
    await finish.promise;
    return { view: 1, deliveries: 0, damage: [] };
  });
  const night = nights[0]?.();
  const signal = await begun.promise;
  const steps: string[] = [];
  const stopped = nightly.stop().then(() => steps.push('stopped'));
  await new Promise(setImmediate);
  expect([destroyed, signal.aborted, steps]).toEqual([['one'], true, []]);
  finish.resolve();
  await stopped;
  await night;
  expect(repaired).toHaveLength(1);
});

test('a process that stops while it asks for its turn verifies nothing', async () => {
  const { nights, repaired, warnings, process } = start();
  let verified = false;
  const nightly = process('one', async () => {
    verified = true;
    return { view: 0, deliveries: 0, damage: [] };
  });
  const night = nights[0]?.();
  await nightly.stop();
  await night;
  expect([verified, repaired, warnings]).toEqual([false, [], []]);
});

test('what was removed behind the back of the service is there again after the night', async () => {
  const { account, append, withEngines, done, fuel } = commandLine({ FUEL_LOG_LEVEL: 'fatal' });
  const config = loadConfig(process.env, 'command');
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
  const db = new DatabaseSync(join(config.FUEL_DATA_DIR, 'deliveries.db'));
  db.exec('DELETE FROM deliveries WHERE transaction_id IN (1, 3)');
  db.close();
  expect((await fuel('verify')).code).toBe(1);
  expect(await verifyInThread(threadsOfCommand(config), new AbortController().signal)).toEqual({
    view: 1,
    deliveries: 2,
    damage: [],
  });
  expect((await fuel('verify')).code).toBe(0);
  const { lines } = await fuel('audit', '--type', 'AgreementRepaired', '--newest', '--limit', '2', '--json');
  expect(lines).toMatchObject([
    { actor: 'system', command: 'nightly verification', data: { what: 'deliveries', repaired: 2 } },
    { actor: 'system', data: { what: 'view', repaired: 1 } },
  ]);
});

test('a verification in its thread that is stopped says so, and not what the stop broke off', async () => {
  const config = loadConfig({ FUEL_DATA_DIR: temporaryFolder(), FUEL_LOG_LEVEL: 'fatal' }, 'command');
  const engines = await openEngines(config, systemClock);
  await storeIdentity(engines.store(), systemClock);
  await engines.close();
  await expect(verifyInThread(threadsOfCommand(config), AbortSignal.abort())).rejects.toThrow(
    'the nightly verification was stopped',
  );
});
