import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { accountLists } from '../../../src/operator/answers/account.ts';
import type { PageContext } from '../../../src/operator/console/html/layout.ts';
import { findPage } from '../../../src/operator/console/pages/accounts.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

test('the console finds an account by its name, however that is written', async () => {
  const directory = directoryOf(opened('Jose\u0301\u00a0\u200fFreight'));
  const lists = await accountLists({ directory, environment: 'staging' });
  const figures = { lists: async () => ({ value: lists }) };
  const parts = { directory, store: { readStream: async () => [] }, clock: systemClock };
  const found = async (q: string) => {
    const page = await findPage({ parts, figures, query: { q }, name: '' } as unknown as PageContext);
    const list = page.parts.find((part) => part !== null && 'rows' in part);
    return list !== undefined && list !== null && 'count' in list ? list.count : undefined;
  };
  for (const text of ['josé freight', 'JOSE FREIGHT', '\u200bfreight\ufeff', '7'])
    expect(await found(text), text).toBe(1);
  for (const text of ['harbour', '-', '8']) expect(await found(text), text).toBe(0);
  expect(await found('\u200b'), 'nothing: every account').toBe(1);
});
