import { expect, onTestFinished, test, vi } from 'vitest';
import { catchUpAccounts } from '../../../src/accounts/rows/catch-up.ts';
import { ACCOUNTS_LEASE } from '../../../src/accounts/rows/follower.ts';
import { readKeys, readProgress } from '../../../src/accounts/rows/read-rows.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { world } from '../../../src/base/world.ts';
import { keyIssued, onKey, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { noRows } from '../../support/accounts/rows-after.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { memoryCoordination } from '../../support/engines/coordination.ts';
import { replacing } from '../../support/interposed.ts';

function start() {
  const { store, clock, account } = openPushStores();
  const coordination = memoryCoordination(clock);
  onTestFinished(() => coordination.close());
  const tables = noRows(clock);
  const options = { store, tables, coordination, clock, log: silentLog, holder: 'command' };
  const key = async () => (await readKeys(tables, [PREFIX])).get(PREFIX)?.key;
  return { account, coordination, tables, options, key };
}

test('a command that no process runs beside makes the rows itself, and once more what was recorded since', async () => {
  const { account, coordination, options, key } = start();
  await account(opened(), keyIssued());
  await catchUpAccounts(options);
  expect(await key()).toMatchObject({ active: true });
  await account(onKey('KeySwitchedOff'));
  await catchUpAccounts(options);
  expect(await key()).toMatchObject({ active: false });
  expect(await coordination.holder(ACCOUNTS_LEASE)).toBeUndefined();
});

test('rows that have everything are read without following the log', async () => {
  const { account, options } = start();
  await account(opened());
  await catchUpAccounts(options);
  const acquire = vi.spyOn(options.coordination, 'acquire');
  await catchUpAccounts(options);
  expect(acquire).not.toHaveBeenCalled();
});

test('a command waits for the process that follows the log, and is refused if that makes no progress', async () => {
  const { account, coordination, tables, options, key } = start();
  const sleep = vi.spyOn(world, 'sleep').mockResolvedValue(undefined);
  onTestFinished(() => sleep.mockRestore());
  await account(opened(), keyIssued());
  await coordination.acquire(ACCOUNTS_LEASE, 'a process', 60_000);
  await expect(catchUpAccounts(options)).rejects.toMatchObject({ code: 'REFUSED' });
  expect(await readProgress(tables)).toBeUndefined();
  sleep.mockImplementationOnce(() => coordination.release(ACCOUNTS_LEASE, 'a process'));
  sleep.mockImplementation(() => new Promise((resolve) => setTimeout(resolve, 5)));
  await catchUpAccounts(options);
  expect(await key()).toMatchObject({ active: true });
});

test('a command is refused at once while the rows cannot be read', async () => {
  const { account, tables, options } = start();
  await account(opened());
  const get = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
  const away = { ...options, tables: replacing(tables, { get }) };
  await expect(catchUpAccounts(away)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});
