import { describe, expect, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { skipEvent } from '../../../src/operator/verify/skip-event.ts';
import { NOTICES_GROUP } from '../../../src/push/notices/notifier.ts';
import { onKey } from '../../support/accounts/account-samples.ts';
import { unavailable } from '../../support/deliveries/push-machine.ts';
import {
  CONTACTS,
  contactsSet,
  DISABLED,
  OPERATOR,
  startNotifier,
  WAIT,
} from '../../support/service/running-notifier.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort } from '../../support/tcp-server.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const UNKNOWN = { type: 'AccountFrozen', data: { account_id: 7 } } as unknown as AccountEvent;

async function withServer() {
  const smtp = await startSmtpServer();
  const notifier = await startNotifier({ smtpUrl: smtp.url });
  /** Resolves once so many lines of the log say so. */
  const loggedTimes = (text: string, count: number) =>
    vi.waitUntil(() => notifier.lines.filter(({ msg }) => String(msg).includes(text)).length >= count, WAIT);
  /** Whether the notifier has acknowledged every event. */
  const isDone = async () => {
    const last = (await notifier.store.readStream('account-7')).at(-1);
    const { position = 0 } = (await notifier.subscriptions.status(NOTICES_GROUP)) ?? {};
    return last !== undefined && position >= last.position;
  };
  return { smtp, ...notifier, loggedTimes, isDone };
}

const recipients = (mails: readonly { readonly to: readonly string[] }[]) => mails.map(({ to }) => to);

describe('a notice that could not be mailed', () => {
  test('is mailed again only to the side that did not get it', async () => {
    const { smtp, run, record, logged, clock, loggedTimes } = await withServer();
    smtp.refuse.push(null, null, 451); // the contacts are taken, the operator is not
    run();
    await record(DISABLED);
    await logged('could not be mailed yet');
    expect(recipients(smtp.mails)).toEqual([CONTACTS]);
    clock.advance(SECOND_MS);
    await loggedTimes('notice mailed', 2);
    expect(recipients(smtp.mails)).toEqual([CONTACTS, [OPERATOR]]);
  });

  test('is retried after a second, then twice as long each time, five minutes at most, and not parked', async () => {
    const notifier = await startNotifier({ smtpUrl: `smtp://127.0.0.1:${await closedPort()}` });
    notifier.run();
    await notifier.record(DISABLED);
    const delays = () =>
      notifier.lines.flatMap(({ delayMs }) => (typeof delayMs === 'number' ? [delayMs] : []));
    for (let retry = 1; retry <= 12; retry++) {
      await vi.waitUntil(() => delays().length === retry, WAIT);
      notifier.clock.advance((delays().at(-1) ?? 0) - 1);
      await new Promise((resolve) => setTimeout(resolve, 15));
      expect(delays()).toHaveLength(retry);
      notifier.clock.advance(1);
    }
    const expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map((seconds) => seconds * SECOND_MS);
    expect(delays().slice(0, 12)).toEqual(expected);
    notifier.clock.advance(DAY_MS);
    await notifier.logged('it is given up');
    expect(await notifier.subscriptions.parked(NOTICES_GROUP)).toEqual([]);
  });

  test('is not begun by a service that is asked to stop', async () => {
    const { smtp, run, abort, stop, record, clock } = await withServer();
    run(abort);
    await record(DISABLED);
    await smtp.received(1);
    await stop();
    expect(smtp.mails).toHaveLength(1);
    clock.advance(300 * SECOND_MS);
    run();
    await vi.waitUntil(() => recipients(smtp.mails).some((to) => to.includes(OPERATOR)), WAIT);
  });

  test('leaves those of later events alone when the service is asked to stop; the next start mails them', async () => {
    const { smtp, run, abort, stop, record, clock, lines } = await withServer();
    await record(DISABLED, onKey('WebhookEnabled'));
    run(abort);
    await smtp.received(1);
    await stop();
    expect(lines.filter(({ msg }) => String(msg).includes('could not be mailed yet'))).toHaveLength(1);
    clock.advance(300 * SECOND_MS);
    run();
    await smtp.received(4);
    expect(recipients(smtp.mails).filter((to) => to.includes(OPERATOR))).toHaveLength(2);
  });

  test('is mailed after the next start when the service stops', async () => {
    const { smtp, run, stop, record, clock } = await withServer();
    smtp.refuse.push(451, 451);
    run();
    await record(DISABLED);
    await vi.waitUntil(() => smtp.refuse.length === 0, WAIT);
    await stop();
    clock.advance(300 * SECOND_MS);
    run();
    await smtp.received(2);
    expect(recipients(smtp.mails)).toEqual([CONTACTS, [OPERATOR]]);
  });
});

describe('a notice', () => {
  test('goes to today’s contacts', async () => {
    const { smtp, run, record } = await withServer();
    await record(DISABLED, contactsSet('new@customer.example'));
    run();
    await smtp.received(2);
    expect(recipients(smtp.mails)).toEqual([['new@customer.example'], [OPERATOR]]);
  });

  test('of an event that is exactly a day old is mailed', async () => {
    const { smtp, run, record, clock } = await withServer();
    await record(DISABLED);
    clock.advance(DAY_MS);
    run();
    await smtp.received(2);
    expect(recipients(smtp.mails)).toEqual([CONTACTS, [OPERATOR]]);
  });

  test('is mailed once: neither a restart nor time repeats it', async () => {
    const { smtp, run, stop, record, clock, loggedTimes } = await withServer();
    run();
    await record(DISABLED);
    await loggedTimes('notice mailed', 2);
    await record(onKey('KeySwitchedOff'));
    await stop();
    clock.advance(3_600 * SECOND_MS);
    run();
    await record(onKey('WebhookEnabled'));
    await loggedTimes('notice mailed', 4);
    expect(smtp.mails.map(({ raw }) => /^Subject: (.*):/m.exec(raw)?.[1])).toEqual([
      'Webhook was switched off',
      'Webhook was switched off',
      'Webhook was switched on again',
      'Webhook was switched on again',
    ]);
  });

  test('of an account that can not be read to its end is parked with the reason', async () => {
    const { smtp, run, record, subscriptions, lines, store, clock, loggedTimes, isDone } = await withServer();
    await record(DISABLED, UNKNOWN);
    run();
    await vi.waitUntil(async () => (await subscriptions.parked(NOTICES_GROUP)).length === 2, WAIT);
    const parked = await subscriptions.parked(NOTICES_GROUP);
    expect(parked.map(({ event, reason }) => [event.type, reason])).toEqual([
      ['WebhookDisabled', 'the stream account-7 can not be read to its end'],
      ['AccountFrozen', expect.stringContaining('unknown event type')],
    ]);
    expect(smtp.mails).toEqual([]);
    expect(lines.filter(({ msg }) => String(msg).includes('given up'))).toEqual([]);
    // Once the operator has skipped what closed it, and has had the group handle it again:
    const [, unknown] = parked;
    const author = { actor: 'test', command: 'test' };
    await skipEvent(store, unknown?.event.position ?? 0, { author, reason: 'by hand', clock });
    await subscriptions.replayParked(NOTICES_GROUP);
    await loggedTimes('notice mailed', 2);
    await vi.waitUntil(
      async () => (await isDone()) && (await subscriptions.parked(NOTICES_GROUP)).length === 0,
      WAIT,
    );
  });

  test('is done with once it was sent, and so is the next', async () => {
    const { run, record, loggedTimes, isDone } = await withServer();
    run();
    await record(DISABLED);
    await loggedTimes('notice mailed', 2);
    await vi.waitUntil(isDone, WAIT);
    await record(onKey('WebhookEnabled'));
    await loggedTimes('notice mailed', 4);
    await vi.waitUntil(isDone, WAIT);
  });

  test('is not parked by a notifier whose store is closed', async () => {
    const { run, record, failOnce, ended, subscriptions } = await withServer();
    failOnce(new FuelError('STORE_CLOSED', 'closed'));
    run();
    await record(DISABLED);
    await expect(ended()).rejects.toThrow('closed');
    expect(await subscriptions.parked(NOTICES_GROUP)).toEqual([]);
  });

  test('is not parked while a store is unavailable', async () => {
    const { run, record, failOnce, logged, subscriptions } = await withServer();
    failOnce(unavailable());
    run();
    await record(DISABLED);
    await logged('notices waits: a store is unavailable');
    expect(await subscriptions.parked(NOTICES_GROUP)).toEqual([]);
  });

  test('is logged with the number of recipients that the mail server did not take', async () => {
    const { smtp, run, record, lines, loggedTimes } = await withServer();
    smtp.refuse.push(550);
    run();
    await record(DISABLED);
    await loggedTimes('notice mailed', 2);
    expect(recipients(smtp.mails)).toEqual([[CONTACTS[1]], [OPERATOR]]);
    const mailed = lines.filter(({ msg }) => msg === 'notice mailed');
    expect(mailed).toMatchObject([
      { account: 7, kind: 'disabled', audience: 'customer', rejected: 1 },
      { account: 7, kind: 'disabled', audience: 'operator', rejected: 0 },
    ]);
  });
});

test('a notifier whose subscription fails subscribes again and mails then', async () => {
  const smtp = await startSmtpServer();
  let failures = 0;
  const notifier = await startNotifier({
    smtpUrl: smtp.url,
    through: (subscriptions) =>
      new Proxy(subscriptions, {
        get(target, name) {
          const member = Reflect.get(target, name, target) as unknown;
          if (typeof member !== 'function') return member;
          if (name === 'ensureGroup' && failures++ === 0) return () => Promise.reject(unavailable());
          return member.bind(target);
        },
      }),
  });
  await notifier.record(DISABLED);
  notifier.run();
  await notifier.logged('notices waits: a store is unavailable');
  await smtp.received(2);
  expect(failures).toBe(2);
});
