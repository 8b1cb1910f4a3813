import { describe, expect, it } from 'vitest';
import { loseDeliveryLog } from '../support/deliveries/lose-delivery-log.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { voided } from '../support/transactions/e2e-samples.ts';

const NOTHING = {
  owed: 0,
  delivered: 0,
  pending: 0,
  held: 0,
  failed: 0,
  withdrawn: 0,
  missing: 0,
  surplus: 0,
  not_judged: 0,
  not_owed: {},
};

describe('fuel verify deliveries', () => {
  it('counts owed deliveries by state, and finds missing ones', async () => {
    const push = await PushService.start();
    const verify = async (...args: readonly string[]) => {
      const { code, json, stderr } = await push.service.fuel(['verify', 'deliveries', '--json', ...args]);
      return { code, counts: json.deliveries, stderr };
    };
    expect(await verify()).toEqual({ code: 0, counts: NOTHING, stderr: '' });
    const { path, account } = await push.customer(1);
    const [first = 0] = await push.push(account, 3);
    await push.settled(account, 'delivered', 3);
    push.receiver.answer(path, answerWith(500));
    await push.push(account, 2);
    await push.reached(account, 'failed', 2);
    await push.service.done(['account', 'integration', '1', 'off', '--wait']);
    const [taken = 0] = await push.push(account, 2);
    await push.reached(account, 'held', 2);
    await push.record([taken, first].map((id) => voided(id, { account_id: account })));
    await push.reached(account, 'withdrawn', 1);
    await push.push(account, 1, { created_at: '2026-01-01T00:00:00.000Z' });
    const not_owed = { 'the transaction was created before the webhook URL was set': 1 };
    const expected = { ...NOTHING, not_owed, owed: 7, delivered: 3, failed: 2, held: 1, withdrawn: 1 };
    expect(await verify()).toEqual({ code: 0, counts: expected, stderr: '' });
    const unknown = await push.service.fuel(['verify', 'deliveries', '--account', '2']);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('account 2 is not known')]);
    const whole = await push.service.fuel(['verify', '--json']);
    expect([whole.code, Object.keys(whole.json)]).toEqual([0, ['view', 'deliveries']]);

    // Deliveries of events recorded while no webhooks role runs are owed, but not created yet.
    push.receiver.answer(path, answerWith(200));
    await push.service.done(['account', 'integration', '1', 'on', '--wait']);
    await push.reached(account, 'delivered', 4);
    await push.service.stop();
    await push.push(account, 2);
    const missing = await verify();
    expect([missing.code, missing.counts.missing]).toEqual([1, 2]);
    expect(missing.stderr.trim().split('\n')).toHaveLength(2);
    expect((await verify('--repair')).code).toBe(0);
    await push.service.start();
    await push.reached(account, 'delivered', 6);
    expect(push.receiver.to(path)).toHaveLength(3 + 2 * 3 + 1 + 2);
    expect((await verify()).code).toBe(0);
  });
});

describe('a delivery log that is lost', () => {
  it('stops the webhooks role, which names the solution; the solution sends under the same ids', async () => {
    const push = await PushService.start();
    const { path, account } = await push.customer(1);
    const [taken = 0] = await push.push(account, 5);
    await push.settled(account, 'delivered', 5);
    await push.record([voided(taken, { account_id: account })]);
    const ids = new Set(push.receiver.to(path).map(({ body }) => body.id));
    await push.service.stop();
    await push.closeFiles();
    await loseDeliveryLog(push.service);

    push.service.launch();
    expect(await push.service.ended()).toBe(1);
    expect(push.service.output).toContain('--resend-unknown');
    const api = await new ServiceProcess({
      dataDir: push.service.dataDir,
      args: ['--role', 'api', '--role', 'projector'],
    }).start();
    expect(await api.stop()).toBe(0);

    const refused = await push.service.fuel(['verify', 'deliveries', '--repair']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--resend-unknown')]);
    const usage = await push.service.fuel(['verify', 'deliveries', '--resend-unknown']);
    expect(usage.code).toBe(2);
    const repaired = await push.service.fuel([
      'verify',
      'deliveries',
      '--repair',
      '--resend-unknown',
      '--json',
    ]);
    expect(repaired.code).toBe(0);
    expect(repaired.stderr).toMatch(/\b4\b[^\n]*second time/);
    expect(push.receiver.to(path)).toHaveLength(5);

    await push.service.start();
    await push.reached(account, 'delivered', 4);
    const again = push.receiver.to(path).slice(5);
    expect(again).toHaveLength(4);
    for (const { body } of again) {
      expect(ids).toContain(body.id);
      expect(body.data.transaction.id).not.toBe(taken);
    }
    await push.service.restart();
    await push.push(account);
    await push.receiver.received(path, 10);
    expect(push.receiver.to(path)).toHaveLength(10);
  });
});
