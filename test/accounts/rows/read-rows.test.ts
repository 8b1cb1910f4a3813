import { expect, test } from 'vitest';
import { readReached } from '../../../src/accounts/rows/read-rows.ts';
import { PROGRESS } from '../../../src/accounts/rows/tables.ts';
import { change } from '../../../src/tables/tables.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { rowsOfEvents } from '../../support/accounts/kept-rows.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('rows answer for each position that was read up to, also beyond the checkpoint, and for no later one', async () => {
  const tables = await rowsOfEvents([opened(), keyIssued()], new FakeClock());
  await tables.write([change(PROGRESS, 'accounts', { position: 2, reached: 100 })]);
  const rows = await readReached(tables, [7, 8]);
  expect([...(rows({ accountId: 7, position: 100 })?.account?.keys.keys() ?? [])]).toEqual([PREFIX]);
  expect(rows({ accountId: 8, position: 100 })).toEqual({ account: undefined });
  expect(rows({ accountId: 7, position: 101 })).toBeUndefined();
  expect(rows({ accountId: 7, position: 2 })).toBeUndefined();
});
