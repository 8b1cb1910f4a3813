import { expect, test } from 'vitest';
import { opened, profileSet } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';

const MINUTE_MS = 60_000;
const ACCESS = [
  { type: 'IntegrationEnabled', data: { account_id: 7 } },
  profileSet('2026-01-01T00:00:00.000Z', null),
] as const;

test('shows an account as it was at a time, whatever happened since', async () => {
  const { fuel, done, account, append } = commandLine();
  const start = Date.now() - 10 * MINUTE_MS;
  const at = (minutes: number) => new Date(start + minutes * MINUTE_MS).toISOString();
  await append('account-7', [opened('North')], start);
  await append('account-7', ACCESS, start + 2 * MINUTE_MS);
  await account({ type: 'AccountRenamed', data: { account_id: 7, name: 'Later' } });
  const shown = await done('account', 'show', '7', '--at', at(3));
  expect(shown).toMatchObject({ at: at(3), name: 'North', access: true, integration: true });
  expect(await done('account', 'show', '7', '--at', at(1))).toMatchObject({ access: false });
  expect(await done('account', 'show', '7')).toMatchObject({ name: 'Later' });
  const text = await fuel('account', 'show', '7', '--at', at(1));
  expect(text.stdout).toMatch(/^At +\d/);
  const unopened = await fuel('account', 'show', '7', '--at', at(-1));
  expect([unopened.code, unopened.stderr]).toEqual([1, expect.stringContaining('was not open at')]);
  expect((await fuel('account', 'show', '7', '--at', at(60))).code).toBe(2);
});
