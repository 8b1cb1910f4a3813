import { expect, test } from 'vitest';
import { NOTICE_MAX_AGE_MS, noticesFor } from '../../projections/notices.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import { foldAccount } from '../../src/domain/account-evolve.ts';
import { noticeText } from '../../src/mail/notice-text.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/account-samples.ts';

const NOW = Date.parse('2026-09-05T12:00:00Z');
const contacts: AccountEvent = {
  type: 'AccountContactsSet',
  data: { account_id: 7, emails: ['a@b.example'] },
};
const options = { operatorEmail: 'op@fuel.example', nowMs: NOW };

function accountAfter(...events: AccountEvent[]) {
  const account = foldAccount(events.map((event) => ({ event, atMs: 0 })));
  if (account === undefined) throw new Error('no account');
  return account;
}

const account = accountAfter(opened(), contacts, keyIssued(), webhookSet());

test('an event calls for a mail to each side that has an address', () => {
  const event = onKey('WebhookFailing');
  const audiences = (of = account, given = options) =>
    noticesFor({ event, atMs: NOW }, of, given).map(({ audience, to }) => [audience, to]);
  expect(audiences()).toEqual([
    ['customer', ['a@b.example']],
    ['operator', ['op@fuel.example']],
  ]);
  expect(audiences(accountAfter(opened(), keyIssued()))).toEqual([['operator', ['op@fuel.example']]]);
  expect(
    noticesFor({ event, atMs: NOW }, accountAfter(opened()), { operatorEmail: null, nowMs: NOW }),
  ).toEqual([]);
});

test('an event calls for a mail for exactly a day', () => {
  const event = onKey('WebhookDisabled');
  expect(noticesFor({ event, atMs: NOW - NOTICE_MAX_AGE_MS }, account, options)).toHaveLength(2);
  expect(noticesFor({ event, atMs: NOW - NOTICE_MAX_AGE_MS - 1 }, account, options)).toEqual([]);
});

test('other events call for none', () => {
  for (const event of [opened(), contacts, keyIssued(), webhookSet(), onKey('WebhookRemoved')]) {
    expect(noticesFor({ event, atMs: NOW }, account, options)).toEqual([]);
  }
});

test('a mail says what happened, to what, and what to do about it', () => {
  const [customer, operator] = noticesFor({ event: onKey('WebhookDisabled'), atMs: NOW }, account, options);
  if (customer === undefined || operator === undefined) throw new Error('no notices');
  expect(noticeText(customer).text).toMatch(/was switched off at 2026-09-05T12:00:00.000Z/);
  expect(noticeText(customer).text).toContain('Address: https://example.com/hook');
  expect(noticeText(customer).text).toContain('put the receiver right');
  expect(noticeText(operator).text).toContain(`fuel webhook enable ${PREFIX}`);
});

test('a line break in a name does not begin another header', () => {
  const named = accountAfter(opened('Evil\r\nBcc: all@example.com'), contacts, keyIssued(), webhookSet());
  const [notice] = noticesFor({ event: onKey('WebhookFailing'), atMs: NOW }, named, options);
  expect(notice && noticeText(notice).subject).toBe(
    `Webhook is failing: Evil Bcc: all@example.com, key ${PREFIX}`,
  );
});
