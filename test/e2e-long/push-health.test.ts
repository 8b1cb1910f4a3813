import { describe, expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { startSmtpServer } from '../support/service/smtp.ts';
import { until, within } from '../support/waiting.ts';

const QUICK = { FUEL_WEBHOOK_RETRY_DELAYS: '20ms,20ms' };
const CONTACTS = ['fleet@customer.test', 'it@customer.test'];
const OPERATOR = 'operator@fuel.test';

describe('a webhook whose deliveries fail', () => {
  it('is disabled after 50 in a row, both sides get a notice, and deliveries resume when it is enabled', async () => {
    const smtp = await startSmtpServer();
    const push = await PushService.start({
      ...QUICK,
      FUEL_SMTP_URL: smtp.url,
      FUEL_MAIL_FROM: 'fuel@fuel.test',
      FUEL_OPERATOR_EMAIL: OPERATOR,
    });
    const { path, prefix } = await push.customer(7);
    await push.service.done(['account', 'contact', '7', '--email', CONTACTS.join(',')]);
    push.receiver.answer(path, answerWith(503, 'away'));
    const before = Date.now();
    await push.push(7, 55);
    await push.settled(7, 'failed', 55);

    await until(async () => (await push.webhook(prefix)).state === 'disabled', 15_000);
    const disabled = await push.webhook(prefix);
    expect(disabled).toMatchObject({ state: 'disabled', reason: expect.stringMatching(/50|5[1-5]/) });
    expect(Date.parse(disabled.since)).toBeGreaterThan(before);
    const audit = (await push.service.done(['audit', '--account', '7', '--json'])).lines;
    for (const [type, least] of [
      ['WebhookFailing', 25],
      ['WebhookDisabled', 50],
    ] as const) {
      const found = audit.filter((line) => line.type === type);
      expect(found).toHaveLength(1);
      const { failed_in_a_row, failing_since, last_answers } = found[0].data;
      expect(failed_in_a_row).toBeGreaterThanOrEqual(least);
      expect(failed_in_a_row).toBeLessThanOrEqual(55);
      expect(Date.parse(failing_since)).toBeGreaterThan(before);
      expect(last_answers[0]).toContain('503');
    }
    const counted = (await push.list('--key', prefix, '--limit', '100')).length;
    expect(counted).toBe(55);

    push.receiver.answer(path, answerWith(200));
    const attempted = push.receiver.to(path).length;
    const [missed] = await push.push(7, 3);
    const shown = async () =>
      (await push.service.done(['transaction', 'show', String(missed), '--json'])).json;
    expect(await shown()).toMatchObject({ deliveries: [], not_sent: [{ key: prefix }] });
    expect((await shown()).not_sent[0].reason).toMatch(/disabled/);
    const refusedTest = await push.service.fuel(['webhook', 'test', prefix]);
    expect([refusedTest.code, refusedTest.stderr]).toEqual([1, expect.stringMatching(/disabled/)]);
    const refused = await push.service.fuel(['delivery', 'redeliver', '--failed', '--key', prefix]);
    expect(refused.code).toBe(1);

    await push.service.done(['webhook', 'enable', prefix, '--wait']);
    expect(await push.webhook(prefix)).toMatchObject({ state: 'active', health: { failed_in_a_row: 0 } });
    const [flows] = await push.push(7);
    const hooks = await push.receiver.received(path, attempted + 1);
    const after = hooks.slice(attempted).map(({ body }) => body.data.transaction.id);
    expect(after).toEqual([flows]);
    await push.service.done(['delivery', 'redeliver', '--failed', '--key', prefix]);
    await push.settled(7, 'delivered', 56);
    const redelivered = push.receiver.to(path).slice(attempted);
    expect(new Set(redelivered.map(({ body }) => body.id)).size).toBe(56);
    expect(redelivered).toHaveLength(56);

    await within(smtp.received(6), 15_000, () => JSON.stringify(smtp.mails));
    expect(smtp.mails).toHaveLength(6);
    const recipients = smtp.mails.map(({ to }) => [...to].sort().join(','));
    expect(recipients.filter((to) => to === OPERATOR)).toHaveLength(3);
    expect(recipients.filter((to) => to === CONTACTS.join(','))).toHaveLength(3);
    for (const { raw } of smtp.mails) {
      expect(raw).toContain(prefix);
      expect(raw).toContain('From: fuel@fuel.test');
    }
  });

  it('is not disabled while a success comes before the fiftieth failure', async () => {
    const push = await PushService.start(QUICK);
    const { path, prefix } = await push.customer(7);
    let failed = 0;
    const failing = async (count: number): Promise<void> => {
      failed += count;
      push.receiver.answer(path, answerWith(500));
      await push.push(7, count);
      await push.reached(7, 'failed', failed);
    };
    await failing(40);
    expect((await push.webhook(prefix)).health.failed_in_a_row).toBe(40);
    push.receiver.answer(path, answerWith(200));
    const test = await push.service.fuel(['webhook', 'test', prefix, '--json']);
    expect([test.code, test.json.status]).toEqual([0, 200]);
    expect((await push.webhook(prefix)).health.failed_in_a_row).toBe(40);
    const attempted = push.receiver.to(path).length;
    await push.push(7);
    await push.receiver.received(path, attempted + 1);
    await until(async () => (await push.webhook(prefix)).health.failed_in_a_row === 0, 15_000);
    await failing(40);
    expect(await push.webhook(prefix)).toMatchObject({ state: 'active', health: { failed_in_a_row: 40 } });
    await failing(10);
    await until(async () => (await push.webhook(prefix)).state === 'disabled', 15_000);
  });
});
