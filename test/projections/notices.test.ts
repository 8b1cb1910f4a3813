import { expect, test } from 'vitest';
import { NOTICE_MAX_AGE_MS, noticesFor } from '../../projections/notices.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import { noticeText } from '../../src/push/notices/notice-text.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';

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

/** An account that has not changed since the event. */
const unchanged = (...events: AccountEvent[]) => {
  const now = accountAfter(...events);
  return { now, atEvent: now };
};
const account = unchanged(opened(), contacts, keyIssued(), webhookSet());

test('an event leads to a mail to each side that has an address', () => {
  const event = onKey('WebhookFailing');
  const audiences = (of = account, given = options) =>
    noticesFor({ event, atMs: NOW }, of, given).map(({ audience, to }) => [audience, to]);
  expect(audiences()).toEqual([
    ['customer', ['a@b.example']],
    ['operator', ['op@fuel.example']],
  ]);
  expect(audiences(unchanged(opened(), keyIssued()))).toEqual([['operator', ['op@fuel.example']]]);
  expect(noticesFor({ event, atMs: NOW }, unchanged(opened()), { operatorEmail: null, nowMs: NOW })).toEqual(
    [],
  );
});

test('an event leads to a mail until it is exactly a day old', () => {
  const event = onKey('WebhookDisabled');
  expect(NOTICE_MAX_AGE_MS).toBe(86_400_000);
  expect(noticesFor({ event, atMs: NOW - NOTICE_MAX_AGE_MS }, account, options)).toHaveLength(2);
  expect(noticesFor({ event, atMs: NOW - NOTICE_MAX_AGE_MS - 1 }, account, options)).toEqual([]);
});

test('other events lead to none', () => {
  for (const event of [opened(), contacts, keyIssued(), webhookSet(), onKey('WebhookRemoved')]) {
    expect(noticesFor({ event, atMs: NOW }, account, options)).toEqual([]);
  }
});

test('a mail says what happened, to what, and what to do about it', () => {
  const [customer, operator] = noticesFor({ event: onKey('WebhookDisabled'), atMs: NOW }, account, options);
  if (customer === undefined || operator === undefined) throw new Error('no notices');
  expect(noticeText(customer).text).toMatch(/was switched off at 2026-09-05T12:00:00.000Z/);
  expect(noticeText(customer).text).toContain('Address: https://example.com/hook');
  expect(noticeText(customer).text).toContain('repair the receiver');
  expect(noticeText(operator).text).toContain(`fuel webhook enable ${PREFIX}`);
});

test('a notice has all that its event and the present account say', () => {
  const disabled: AccountEvent = {
    type: 'WebhookDisabled',
    data: {
      account_id: 7,
      prefix: PREFIX,
      reason: '52 deliveries failed in a row',
      failed_in_a_row: 52,
      failing_since: '2026-09-05T10:00:00.000Z',
      last_answers: ['503', '404'],
    },
  };
  const labelled = unchanged(opened(), contacts, keyIssued({ label: 'ERP' }), webhookSet());
  const common = {
    accountId: 7,
    accountName: 'Harbour Freight',
    prefix: PREFIX,
    keyLabel: 'ERP',
    url: 'https://example.com/hook',
    atMs: NOW - 1_000,
    failedInARow: 52,
    failingSince: '2026-09-05T10:00:00.000Z',
    lastAnswers: ['503', '404'],
  };
  const [first] = noticesFor({ event: disabled, atMs: NOW - 1_000 }, labelled, options);
  expect(first).toEqual({
    ...common,
    kind: 'disabled',
    audience: 'customer',
    to: ['a@b.example'],
    reason: '52 deliveries failed in a row',
  });
  const failing = { type: 'WebhookFailing', data: disabled.data } as AccountEvent;
  const [, second] = noticesFor({ event: failing, atMs: NOW - 1_000 }, labelled, options);
  expect(second).toEqual({
    ...common,
    kind: 'failing',
    audience: 'operator',
    to: ['op@fuel.example'],
    reason: null,
  });
  const now = accountAfter(opened(), contacts, keyIssued(), webhookSet(), onKey('WebhookRemoved'));
  const changed = { now, atEvent: account.now };
  const [third] = noticesFor({ event: onKey('WebhookEnabled'), atMs: NOW }, changed, options);
  expect(third).toMatchObject({
    kind: 'enabled',
    keyLabel: null,
    url: 'https://example.com/hook',
    reason: null,
    failedInARow: 0,
    failingSince: null,
    lastAnswers: [],
  });
});
