import { describe, expect, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { GroupEvent, PersistentSubscriptions } from '../../../src/event-store/event-store.ts';
import { NOTICES_GROUP } from '../../../src/push/notices/notifier.ts';
import { onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { DISABLED, OPERATOR, startNotifier as start, WAIT } from '../../support/service/running-notifier.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';

const DAY_MS = 86_400_000;

/** Intercepts the notifier's acknowledgements. */
function acknowledging(acknowledge: (ack: () => Promise<void>) => Promise<void>) {
  return (subscriptions: PersistentSubscriptions): PersistentSubscriptions =>
    Object.assign(Object.create(subscriptions), {
      consume: (...all: Parameters<PersistentSubscriptions['consume']>) => {
        const consumer = subscriptions.consume(...all);
        const ack = consumer.ack.bind(consumer);
        return Object.assign(consumer, {
          ack: (events: readonly GroupEvent[]) => acknowledge(() => ack(events)),
        });
      },
      ensureGroup: subscriptions.ensureGroup.bind(subscriptions),
      replayParked: subscriptions.replayParked.bind(subscriptions),
    });
}

describe('the notifier', () => {
  test('mails the contacts and the operator separately when a webhook is disabled', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    notifier.run();
    await notifier.record(DISABLED);
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
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    await notifier.record(onKey('WebhookFailing'), onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
    await notifier.record(onKey('WebhookDisabled'), onKey('WebhookEnabled'));
    notifier.run();
    const mails = await smtp.received(6);
    const subjects = mails.map(({ raw }) => /^Subject: (.*):/m.exec(raw)?.[1]);
    expect(subjects.filter((_, index) => index % 2 === 0)).toEqual([
      'Webhook is failing',
      'Webhook was switched off',
      'Webhook was switched on again',
    ]);
  });

  test('mails nothing of events that are more than a day old, when it goes through the whole log', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    await notifier.record(onKey('WebhookFailing'));
    notifier.clock.advance(DAY_MS + 1);
    await notifier.record(DISABLED);
    notifier.run();
    await smtp.received(2);
    await notifier.logged('notice mailed');
    expect(smtp.mails.map(({ raw }) => /^Subject: (.*):/m.exec(raw)?.[1])).toEqual([
      'Webhook was switched off',
      'Webhook was switched off',
    ]);
  });

  test('names the webhook’s address of the time of the event', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    await notifier.record(DISABLED, webhookSet({ url: 'https://changed.example/hook' }));
    notifier.run();
    for (const { raw } of await smtp.received(2)) {
      expect(raw).toContain('Address: https://example.com/hook');
      expect(raw).not.toContain('changed.example');
    }
  });

  test('mails nothing twice where its subscription begins again, as on a copy or a new file', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    notifier.run();
    await notifier.record(DISABLED);
    await smtp.received(2);
    await vi.waitUntil(async () => (await notifier.store.readStream('notices-7')).length === 2, WAIT);
    await notifier.stop();
    await notifier.forgetSubscriptions();
    notifier.run();
    await notifier.record(onKey('WebhookEnabled'));
    await smtp.received(4);
    const subjects = smtp.mails.map(({ raw }) => /^Subject: (.*):/m.exec(raw)?.[1]);
    expect(subjects.filter((subject) => subject === 'Webhook was switched off')).toHaveLength(2);
  });

  test('mails nothing twice where its record of a notice failed once, and records it then', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    notifier.failRecordOnce(new FuelError('STORE_UNAVAILABLE', 'away'));
    notifier.run();
    await notifier.record(DISABLED);
    await notifier.logged('could not be mailed yet');
    notifier.clock.advance(1_000);
    await smtp.received(2);
    await vi.waitUntil(async () => (await notifier.store.readStream('notices-7')).length === 2, WAIT);
    expect(smtp.mails).toHaveLength(2);
  });

  test('retries when the mail server can not take it yet, and notifies each side once', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    smtp.refuse.push(451, 451); // both of the contacts
    notifier.run();
    await notifier.record(DISABLED);
    await notifier.logged('could not be mailed yet');
    expect(smtp.mails).toEqual([]);
    notifier.clock.advance(1_000);
    await smtp.received(2);
    expect(smtp.mails.map(({ to }) => to)).toEqual([
      ['fleet@customer.example', 'it@customer.example'],
      [OPERATOR],
    ]);
  });

  test('gives up a mail that could not be sent for a day, and logs it', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    smtp.refuse.push(451, 451);
    notifier.run();
    await notifier.record(DISABLED);
    await notifier.logged('could not be mailed yet');
    notifier.clock.advance(DAY_MS + 1);
    await notifier.logged('it is given up');
    expect([smtp.mails, notifier.givenUp()]).toEqual([[], 1]);
  });

  test('continues with the next mail when the server refuses one permanently, and logs it', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    smtp.refuse.push(550, 550);
    notifier.run();
    await notifier.record(DISABLED);
    const [mail] = await smtp.received(1);
    expect(mail?.to).toEqual([OPERATOR]);
    await notifier.logged('refused by the mail server');
    await notifier.record(onKey('WebhookEnabled'));
    await smtp.received(3);
    expect(notifier.givenUp()).toBe(1);
  });

  test('names the notice in the log by ids alone where there is no mail server', async () => {
    const notifier = await start();
    notifier.run();
    await notifier.record(DISABLED);
    await notifier.logged('FUEL_SMTP_URL is not set');
    const { msg, level, ...line } =
      notifier.lines.find(({ msg }) => String(msg).includes('not mailed')) ?? {};
    expect(line).toMatchObject({ account: 7, kind: 'disabled', audience: 'customer' });
    expect(JSON.stringify(notifier.lines)).not.toMatch(/Harbour Freight|example/);
  });

  test('parks an event that can not be read and continues', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    notifier.run();
    await notifier.record({ type: 'AccountFrozen', data: { account_id: 7 } } as unknown as AccountEvent);
    await vi.waitUntil(async () => (await notifier.subscriptions.parked(NOTICES_GROUP)).length === 1, WAIT);
    expect((await notifier.subscriptions.parked(NOTICES_GROUP))[0]?.reason).toContain('unknown event type');
  });

  test('acknowledges what needs no mail before it sends one, so that a long history is skipped fast', async () => {
    const smtp = await startSmtpServer();
    const mailsAtAck: number[] = [];
    const notifier = await start({
      smtpUrl: smtp.url,
      through: acknowledging(async (ack) => {
        mailsAtAck.push(smtp.mails.length);
        await ack();
      }),
    });
    await notifier.record(DISABLED, onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
    notifier.run();
    await smtp.received(2);
    await vi.waitUntil(async () => mailsAtAck.length === 2, WAIT);
    expect(mailsAtAck).toEqual([0, 2]);
  });

  test('continues after an acknowledgement that a store could not take, and mails nothing twice', async () => {
    const smtp = await startSmtpServer();
    let failures = 0;
    const notifier = await start({
      smtpUrl: smtp.url,
      through: acknowledging(async (ack) => {
        if (failures++ < 2) throw new FuelError('STORE_BUSY', 'locked');
        await ack();
      }),
    });
    notifier.run();
    await notifier.logged('notices waits: a store is unavailable');
    notifier.clock.advance(120_000); // what was not acknowledged is delivered again
    await notifier.logged('notices continues');
    await vi.waitUntil(() => failures === 2, WAIT); // what comes before it would wait for its lease, by a clock that stands
    await notifier.record(DISABLED);
    await smtp.received(2);
    expect(smtp.mails).toHaveLength(2);
  });

  test('has ended when what it did is acknowledged', async () => {
    const begun = Promise.withResolvers<void>();
    let isDone = false;
    const notifier = await start({
      through: acknowledging(async (ack) => {
        begun.resolve();
        await new Promise((resolve) => setTimeout(resolve, 80));
        await ack();
        isDone = true;
      }),
    });
    notifier.run();
    await begun.promise;
    await notifier.stop();
    expect(isDone).toBe(true);
  });

  test('ends with a fault of the program, under its own name', async () => {
    const notifier = await start({
      through: acknowledging(() => Promise.reject(new TypeError('not a function'))),
    });
    notifier.run();
    await expect(notifier.ended()).rejects.toThrow(new TypeError('not a function'));
  });

  test('parks an event at which the program fails, under the name of the fault, and continues', async () => {
    const smtp = await startSmtpServer();
    const notifier = await start({ smtpUrl: smtp.url });
    const parked = () => notifier.subscriptions.parked(NOTICES_GROUP);
    notifier.failOnce(new TypeError('no such member'));
    notifier.run();
    await notifier.record(DISABLED);
    await vi.waitUntil(async () => (await parked()).length === 1, WAIT);
    expect(await parked()).toMatchObject([
      { event: { type: 'WebhookDisabled' }, reason: 'TypeError: no such member' },
    ]);
    await notifier.record(onKey('WebhookEnabled'));
    await smtp.received(2);
    await notifier.stop();
    notifier.run(); // and tries it again at each start
    await smtp.received(4);
    expect(await parked()).toEqual([]);
  });
});
