import { describe, expect, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { groupAdded, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import {
  CONTACTS,
  contactsSet,
  DISABLED,
  OPERATOR,
  startNotifier as start,
  WAIT,
} from '../../support/service/running-notifier.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';

const DAY_MS = 86_400_000;

async function withServer() {
  const smtp = await startSmtpServer();
  const subjects = () => smtp.mails.map(({ raw }) => /^Subject: (.*):/m.exec(raw)?.[1]);
  const recipients = () => smtp.mails.map(({ to }) => to);
  return { smtp, subjects, recipients, ...(await start({ smtpUrl: smtp.url })) };
}

describe('the notifier', () => {
  test('mails the contacts and the operator separately when a webhook is disabled', async () => {
    const { smtp, run, record } = await withServer();
    run();
    await record(DISABLED);
    const [customer, operator] = await smtp.received(2);
    expect(customer?.to).toEqual(['fleet@customer.example', 'it@customer.example']);
    expect(operator?.to).toEqual([OPERATOR]);
    for (const mail of [customer, operator]) {
      expect(mail?.raw).toContain(`Subject: Webhook was switched off: Harbour Freight, key ${PREFIX}`);
      expect(mail?.raw).toContain('From: notices@fuel.example');
      expect(mail?.raw).toContain('Failing since: 2026-09-01T10:00:00.000Z');
      expect(mail?.raw).toContain('- timeout: no answer within 500 ms');
    }
    expect(customer?.raw).not.toContain(OPERATOR);
    expect(operator?.raw).toContain(`fuel webhook enable ${PREFIX}`);
  });

  test('mails a warning and an enable too, and nothing else', async () => {
    const { smtp, run, record, subjects } = await withServer();
    await record(onKey('WebhookFailing'), onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
    await record(onKey('WebhookDisabled'), onKey('WebhookEnabled'));
    run();
    await smtp.received(6);
    expect(subjects().filter((_, index) => index % 2 === 0)).toEqual([
      'Webhook is failing',
      'Webhook was switched off',
      'Webhook was switched on again',
    ]);
  });

  test('mails an event that is exactly a day old, and nothing of older ones, when it goes through the whole log', async () => {
    const { smtp, run, record, clock, logged, subjects, recipients } = await withServer();
    await record(onKey('WebhookFailing'));
    clock.advance(1);
    await record(DISABLED);
    clock.advance(DAY_MS);
    await record(groupAdded());
    run();
    await smtp.received(2);
    await logged('notice mailed', 2);
    expect(subjects()).toEqual(['Webhook was switched off', 'Webhook was switched off']);
    expect(recipients()).toEqual([CONTACTS, [OPERATOR]]);
  });

  test('mails an event that only a clock that is far ahead makes old', async () => {
    const { smtp, run, record, clock } = await withServer();
    await record(DISABLED);
    clock.advance(100 * DAY_MS);
    run();
    await smtp.received(2);
  });

  test('mails to today’s contacts, with the webhook’s address at the time of the event', async () => {
    const { smtp, run, record, recipients } = await withServer();
    await record(
      DISABLED,
      webhookSet({ url: 'https://changed.example/hook' }),
      contactsSet('new@customer.example'),
    );
    run();
    for (const { raw } of await smtp.received(2)) {
      expect(raw).toContain('Address: https://example.com/hook');
      expect(raw).not.toContain('changed.example');
    }
    expect(recipients()).toEqual([['new@customer.example'], [OPERATOR]]);
  });

  test('continues with the next mail when the server refuses one permanently, and logs it', async () => {
    const { smtp, run, record, logged, givenUp } = await withServer();
    smtp.refuse.push(550, 550);
    run();
    await record(DISABLED);
    const [mail] = await smtp.received(1);
    expect(mail?.to).toEqual([OPERATOR]);
    await logged('refused by the mail server');
    await record(onKey('WebhookEnabled'));
    await smtp.received(3);
    expect(givenUp()).toBe(1);
  });

  test('logs a mail with the number of recipients that the mail server did not take', async () => {
    const { smtp, run, record, lines, logged, recipients } = await withServer();
    smtp.refuse.push(550);
    run();
    await record(DISABLED);
    await logged('notice mailed', 2);
    expect(recipients()).toEqual([[CONTACTS[1]], [OPERATOR]]);
    expect(lines.filter(({ msg }) => msg === 'notice mailed')).toMatchObject([
      { account: 7, kind: 'disabled', audience: 'customer', rejected: 1 },
      { account: 7, kind: 'disabled', audience: 'operator', rejected: 0 },
    ]);
  });

  test('names the notice in the log by ids alone where there is no mail server', async () => {
    const { run, record, logged, lines } = await start();
    run();
    await record(DISABLED);
    await logged('FUEL_SMTP_URL is not set', 2);
    const { msg, level, ...line } = lines.find(({ msg }) => String(msg).includes('not mailed')) ?? {};
    expect(line).toMatchObject({ account: 7, kind: 'disabled', audience: 'customer' });
    expect(JSON.stringify(lines)).not.toMatch(/Harbour Freight|example/);
  });

  test('leaves alone what it does not mail, also where it cannot be read, and its checkpoint moves on', async () => {
    const { run, record, isDone, lines } = await withServer();
    run();
    await record(onKey('KeySwitchedOff'), {
      type: 'AccountFrozen',
      data: { account_id: 7 },
    } as unknown as AccountEvent);
    await vi.waitUntil(isDone, WAIT);
    expect(lines.filter(({ level }) => level !== 30)).toEqual([]);
  });

  test('ends with a fault of the program in its subscription, under its own name', async () => {
    const { run } = await withServer();
    const { ended } = run({
      coordination: (whole) => ({
        ...whole,
        moveCheckpoint: () => Promise.reject(new TypeError('not a function')),
      }),
    });
    await expect(ended).rejects.toThrow(new TypeError('not a function'));
  });

  test('ends where its store is closed', async () => {
    const { run, record } = await withServer();
    await record(DISABLED);
    const { ended } = run({
      store: (whole) => ({
        ...whole,
        append: () => Promise.reject(new FuelError('STORE_CLOSED', 'closed')),
      }),
    });
    await expect(ended).rejects.toThrow('closed');
  });
});
