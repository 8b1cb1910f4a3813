import { expect, test } from 'vitest';
import { accountFigures, accountsWithoutContact } from '../../../src/operator/accounts/account-figures.ts';
import { keyIssued, onKey, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';

/** Events of an account with one key, named after it. */
function account(id: number, ...others: readonly { readonly type: string; readonly data: object }[]) {
  const prefix = `key${id}`.padEnd(10, 'x');
  return [opened(`Customer ${id}`), keyIssued(), webhookSet(), ...others].map(({ type, data }) => ({
    type,
    data: { ...data, account_id: id, ...('prefix' in data && { prefix }) },
  }));
}
const OFF = onKey('WebhookDisabled');
const GUESSED = { type: 'AccountGuessed', data: {} };

test('accounts and the webhooks of active keys are counted, and those that are off are named, the latest first', async () => {
  const rows = await rowsAfter(
    ...[...account(9, onKey('KeySwitchedOff')), ...account(7), ...account(8, OFF)],
    ...[...account(11, onKey('WebhookRemoved')), ...account(10, OFF), ...account(12, GUESSED)],
  );
  expect(await accountFigures(rows)).toEqual({
    accounts: 6,
    webhooks: 3,
    disabledWebhooks: 2,
    unreadable: [{ id: 12, reason: 'unknown event type AccountGuessed' }],
    disabled: ['key10xxxxx', 'key8xxxxxx'],
  });
});

test('an account with a webhook and no contact is found, whether its webhook is on or off', async () => {
  const contacts = { type: 'AccountContactsSet', data: { account_id: 7, emails: ['a@example.com'] } };
  const rows = await rowsAfter(
    ...[...account(9, OFF), ...account(7, contacts), ...account(8), ...account(10, onKey('WebhookRemoved'))],
  );
  expect(await accountsWithoutContact(rows)).toEqual([8, 9]);
});
