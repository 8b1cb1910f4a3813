import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { PageContext } from '../../../src/operator/console/html/layout.ts';
import { accountsPage, findPage } from '../../../src/operator/console/pages/accounts.ts';
import type { Table } from '../../../src/operator/print/document.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';

const CLOSED = { type: 'AccountClosed', data: { account_id: 9, reason: 'ended' } };

/** The ids of the accounts that a page lists. */
async function listed(page: typeof findPage, accounts: Tables, query: PageContext['query']) {
  const figures = { accounts: async () => ({ value: { accounts: 1 } }) };
  const parts = { accounts, store: { readStream: async () => [] }, clock: systemClock };
  const made = await page({ parts, figures, query, name: '' } as unknown as PageContext);
  const list = made.parts.find((part) => part !== null && 'rows' in part) as Table | undefined;
  return list?.rows.map(({ id }) => Number(id.replace('accounts-', '')));
}

test('the console finds an account by its name, however that is written', async () => {
  const rows = await rowsAfter(opened('Jose\u0301\u00a0\u200fFreight'));
  const found = (q: string) => listed(findPage, rows, { q });
  for (const text of ['josé freight', 'JOSE FREIGHT', '\u200bfreight\ufeff', '7'])
    expect(await found(text), text).toEqual([7]);
  for (const text of ['harbour', '-', '8']) expect(await found(text), text).toEqual([]);
  expect(await found('\u200b'), 'nothing: every account').toEqual([7]);
});

test('accounts are listed in pages by id, closed ones only if they are searched', async () => {
  const ids = Array.from({ length: 60 }, (_, at) => at + 1);
  const rows = await rowsAfter(...ids.map((id) => opened(`Customer ${id}`, id)), CLOSED);
  const open = ids.filter((id) => id !== 9);
  expect(await listed(accountsPage, rows, {})).toEqual(open.slice(0, 50));
  expect(await listed(accountsPage, rows, { after: '51' })).toEqual(open.slice(50));
  expect(await listed(accountsPage, rows, { q: 'customer 9' })).toEqual([9]);
  expect(await listed(accountsPage, rows, { q: '9' })).toEqual([9, 19, 29, 39, 49, 59]);
});
