import { expect, test } from 'vitest';
import { checkCorporates } from '../../../src/operator/checks/accounts.ts';
import { corporateAdded, opened } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';
import { said } from '../../support/checks/facts.ts';
import { openProjection } from '../../support/transactions/projector.ts';
import { showing } from '../../support/transactions/records.ts';

async function looked(corporateId: number) {
  const { view, clock } = openProjection();
  const { generation } = await view.reset('store', 0);
  const change = showing({ id: 501, accountId: 7, corporateId, createdAtMs: clock.now() });
  await view.apply([change], { generation, position: 1 });
  return said(checkCorporates(directoryOf(opened(), corporateAdded()), view, clock.now()));
}

test('a record whose corporate is in the directory is right', async () => {
  expect(await looked(31)).toEqual({
    ok: true,
    detail: 'looked at the newest 1 record of the 1 account that changed last',
    do: null,
  });
});

test('a record whose corporate is not in the directory is wrong', async () => {
  expect(await looked(99)).toMatchObject({
    ok: false,
    detail: expect.stringContaining(
      'not in the directory: 99 of account 7; looked at the newest 1 record of',
    ),
    do: expect.stringMatching(
      /if the account is right, fuel account corporate 7 99 .* if it is wrong, fuel import/,
    ),
  });
});

test('a view that is being built cannot be checked', async () => {
  const { view } = openProjection();
  const finding = await said(checkCorporates(directoryOf(opened()), view, 1));
  expect(finding).toMatchObject({ ok: false, do: 'fuel projection status' });
});
