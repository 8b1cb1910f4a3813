import { expect, test } from 'vitest';
import { opened, profileSet } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';

const MINUTE_MS = 60_000;
const ACCESS = [
  { type: 'IntegrationEnabled', data: { account_id: 7 } },
  profileSet('2026-01-01T00:00:00.000Z', null),
] as const;

test('lists what the customers of an account saw at a time, whatever was withdrawn or erased since', async () => {
  const { fuel, done, account, append } = commandLine();
  const start = Date.now() - 10 * MINUTE_MS;
  const at = (minutes: number) => new Date(start + minutes * MINUTE_MS).toISOString();
  await append('account-7', [opened('North')], start);
  await append('account-7', ACCESS, start + 2 * MINUTE_MS);
  for (const id of [1, 2, 3, 4])
    await append(`transaction-${id}`, [confirmed(id, { created_at: `2026-08-0${id}T08:00:00.000Z` })], start);
  await append('transaction-2', [voided(2)], start + 5 * MINUTE_MS);
  await account({ type: 'AccountRenamed', data: { account_id: 7, name: 'Later' } });
  await done('projection', 'rebuild', 'transactions');
  await done('transaction', 'erase', '4', '--reason', 'asked for', '--yes');
  const listed = async (minutes: number, ...args: string[]) =>
    fuel('transaction', 'list', '--account', '7', '--at', at(minutes), '--json', ...args);
  const early = await listed(1);
  expect(early.lines).toMatchObject([{ id: 3 }, { id: 2 }, { id: 1 }]);
  expect(early.stderr).toMatch(/requests were refused at .*: the integration is off/);
  const seen = await listed(4);
  expect(seen.lines).toMatchObject([{ id: 3 }, { id: 2, status: 'CONFIRMED' }, { id: 1 }]);
  expect(seen.stderr).toContain('erased since, and not known any more: 1 of its transactions');
  expect((await listed(4, '--limit', '1', '--after', '3')).lines).toMatchObject([{ id: 2 }]);
  expect((await listed(4, '--corporate', '99')).lines).toEqual([]);
  expect((await listed(6)).lines).toMatchObject([{ id: 3 }, { id: 1 }]);
  const wrong = await listed(6, '--after', '2');
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('shows no transaction 2')]);
  expect((await listed(60)).code).toBe(2);
  const shown = await done('account', 'show', '7', '--at', at(3));
  expect(shown).toMatchObject({ at: at(3), name: 'North', access: true, integration: true });
  expect(await done('account', 'show', '7')).toMatchObject({ name: 'Later' });
  const text = await fuel('account', 'show', '7', '--at', at(1));
  expect(text.stdout).toMatch(/^At +\d/);
  const unopened = await fuel('account', 'show', '7', '--at', at(-1));
  expect([unopened.code, unopened.stderr]).toEqual([1, expect.stringContaining('was not open at')]);
  expect((await fuel('account', 'show', '7', '--at', at(60))).code).toBe(2);
});
