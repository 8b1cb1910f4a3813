import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { onKey } from '../../support/accounts/account-samples.ts';
import { CONTACTS, DISABLED, OPERATOR, startNotifier, WAIT } from '../../support/service/running-notifier.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort } from '../../support/tcp-server.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const AUTHOR = { actor: 'test', command: 'test' };
const UNKNOWN = { type: 'AccountFrozen', data: { account_id: 7 } } as unknown as AccountEvent;
const RETRYING = 'could not be mailed yet: retrying';

async function withServer() {
  const smtp = await startSmtpServer();
  const recipients = () => smtp.mails.map(({ to }) => to);
  return { smtp, recipients, ...(await startNotifier({ smtpUrl: smtp.url })) };
}

describe('a notice that could not be mailed', () => {
  test('is mailed again only to the side that did not get it', async () => {
    const { smtp, run, record, logged, clock, recipients } = await withServer();
    smtp.refuse.push(null, null, 451); // the contacts are taken, the operator is not
    run();
    await record(DISABLED);
    await logged(RETRYING);
    expect(recipients()).toEqual([CONTACTS]);
    clock.advance(SECOND_MS);
    await logged('notice mailed', 2);
    expect(recipients()).toEqual([CONTACTS, [OPERATOR]]);
  });

  test('is retried after a second, then twice as long each time, five minutes at most, for a day', async () => {
    const { run, record, clock, lines, logged, givenUp, isDone } = await startNotifier({
      smtpUrl: `smtp://127.0.0.1:${await closedPort()}`,
    });
    run();
    await record(DISABLED);
    const delays = () => lines.flatMap(({ delayMs }) => (typeof delayMs === 'number' ? [delayMs] : []));
    for (let retry = 1; retry <= 12; retry++) {
      await vi.waitUntil(() => delays().length === retry, WAIT);
      clock.advance((delays().at(-1) ?? 0) - 1);
      await sleep(30);
      expect(delays()).toHaveLength(retry);
      clock.advance(1);
    }
    const expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map((seconds) => seconds * SECOND_MS);
    expect(delays().slice(0, 12)).toEqual(expected);
    expect(await isDone()).toBe(false);
    clock.advance(DAY_MS);
    await logged('it is given up');
    expect(givenUp()).toBe(1);
    await vi.waitUntil(isDone, WAIT);
  });

  test('is retried at once where the clock was an hour ahead when it failed', async () => {
    const { smtp, run, record, logged, clock, recipients } = await withServer();
    clock.advance(HOUR_MS);
    smtp.refuse.push(451, 451);
    run();
    await record(DISABLED);
    await logged(RETRYING);
    clock.advance(-HOUR_MS);
    await smtp.received(2);
    expect(recipients()).toEqual([CONTACTS, [OPERATOR]]);
  });

  test('holds the checkpoint before its event, and that moves on when it is mailed', async () => {
    const { smtp, run, record, logged, clock, store, checkpoint, isDone } = await withServer();
    smtp.refuse.push(451, 451);
    run();
    await vi.waitUntil(isDone, WAIT);
    const before = await checkpoint();
    await record(DISABLED);
    await logged(RETRYING);
    await record(onKey('WebhookEnabled'));
    await logged('notice mailed', 2);
    await sleep(1_200); // longer than it takes to store one
    expect(await checkpoint()).toEqual(before);
    clock.advance(SECOND_MS);
    await smtp.received(4);
    await vi.waitUntil(isDone, WAIT);
    const last = (await store.readStream('account-7')).at(-1);
    expect((await checkpoint())?.anchor).toMatchObject({ stream: 'account-7', revision: last?.revision });
  });

  test('is mailed after the next start, and none that was mailed before it', async () => {
    const { smtp, run, record, logged, clock, recipients } = await withServer();
    smtp.refuse.push(451, 451);
    const first = run();
    await record(DISABLED, onKey('WebhookEnabled'));
    await logged('notice mailed', 2);
    await first.stop();
    clock.advance(300 * SECOND_MS);
    run();
    await smtp.received(4);
    expect(recipients()).toEqual([CONTACTS, [OPERATOR], CONTACTS, [OPERATOR]]);
    expect(smtp.mails.slice(2).every(({ raw }) => raw.includes('Webhook was switched off'))).toBe(true);
  });

  test('of an account that cannot be read to its end waits until the operator has skipped what closed it', async () => {
    const { smtp, run, record, logged, store, clock, lines, isDone } = await withServer();
    await record(DISABLED, UNKNOWN);
    run();
    await logged(RETRYING);
    expect(lines.find(({ msg }) => String(msg).includes(RETRYING))).toMatchObject({
      err: { message: 'the stream account-7 cannot be read to its end' },
    });
    const unknown = (await store.readStream('account-7')).at(-1);
    await skipEvent(store, unknown?.position ?? 0, {
      author: AUTHOR,
      reason: 'by hand',
      clock,
      parked: unknown,
    });
    clock.advance(300 * SECOND_MS);
    await smtp.received(2);
    await vi.waitUntil(isDone, WAIT);
  });

  test('of an event that cannot be read is given up after a day, or when the operator has skipped it', async () => {
    for (const isSkipped of [false, true]) {
      const { smtp, run, record, logged, store, clock, givenUp, isDone } = await withServer();
      await record({ type: 'WebhookDisabled', data: { account_id: 7 } } as unknown as AccountEvent);
      run();
      await logged(RETRYING);
      const event = (await store.readStream('account-7')).at(-1);
      if (isSkipped)
        await skipEvent(store, event?.position ?? 0, {
          author: AUTHOR,
          reason: 'by hand',
          clock,
          parked: event,
        });
      clock.advance(isSkipped ? SECOND_MS : DAY_MS + 1);
      await vi.waitUntil(isDone, WAIT);
      expect([smtp.mails, givenUp()]).toEqual([[], isSkipped ? 0 : 1]);
    }
  });

  test('keeps further events unread while a hundred wait, and they are mailed when it can be', async () => {
    const { run, record, clock, lines, logged, checkpoint, store, sent, isDone } = await startNotifier();
    for (let n = 0; n < 110; n++) await record(n % 2 === 0 ? DISABLED : onKey('WebhookEnabled'));
    const events = await store.readStream('account-7');
    let isDown = true;
    run({
      store: (whole) => ({ ...whole, subscribe: (options) => whole.subscribe({ ...options, batchSize: 2 }) }),
      send: () => async () => {
        if (isDown) throw new Error('it is down');
        return { kind: 'sent', rejected: 0 };
      },
    });
    await logged(RETRYING, 100);
    await sleep(100);
    expect(lines.filter(({ msg }) => String(msg).includes(RETRYING))).toHaveLength(100);
    expect((await checkpoint())?.position ?? 0).toBeLessThan(events[4]?.position ?? 0);
    isDown = false;
    clock.advance(300 * SECOND_MS);
    await vi.waitUntil(isDone, WAIT);
    expect(await sent()).toHaveLength(220);
  });
});
