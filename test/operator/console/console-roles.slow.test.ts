import { beforeAll, describe, expect, test } from 'vitest';
import { PushService } from '../../support/deliveries/push-service.ts';
import { ask } from '../../support/ops/ask-page.ts';
import { linesOf } from '../../support/transactions/e2e-samples.ts';
import { until } from '../../support/waiting.ts';

describe('the console of processes with one role each', () => {
  let push: PushService;
  beforeAll(async () => {
    push = await PushService.prepare({}, ['--role', 'notices']);
    await push.service.start();
  });

  test('is served by each of them, and says what that process does not know', async () => {
    const { status, text } = await ask(push.service.opsUrl);
    expect(status).toBe(200);
    expect(text).toContain('this process has no role webhooks');
    const projections = await ask(`${push.service.opsUrl}/projections`);
    expect(projections.text).toContain('this process does not verify');
  });

  test('explains a transaction that no projector has applied yet', async () => {
    const { operator, opsUrl } = push.service;
    await operator.import(linesOf(push.made(7, 1)), { wait: false });
    const id = push.made(7, 1)[0]?.data.transaction_id as number;
    const { text } = await ask(`${opsUrl}/transactions/${id - 1}`);
    expect(text).toMatch(/not visible.*not applied yet: the view is at 0 of the log/s);
    await until(async () => {
      const overview = await ask(`${opsUrl}/?again=${Math.random()}`);
      return overview.text.includes('no running process has the role projector');
    }); // a figure that took long is read again after 15 s, and a page after 5
  });

  test.each([
    ['/webhooks?state=odd', 400, 'odd is not a state of webhooks'],
    ['/webhooks/aaaaaaaaaa', 404, 'There is no such page'],
    ['/deliveries?state=odd', 400, 'state: must be one of pending'],
    ['/deliveries?account=x', 400, 'account: must be an integer'],
    ['/deliveries?key=svc_test_a_b', 400, 'prefix, the 10 characters after svc_live_'],
    ['/deliveries?since=yesterday', 400, 'since: must be a time with an offset'],
    [
      '/deliveries?since=2026-09-02T00:00:00Z&until=2026-09-01T00:00:00Z',
      400,
      '--since must not be later than --until',
    ],
    ['/deliveries?account=5', 404, 'No account 5'],
    ['/deliveries?key=aaaaaaaaaa', 404, 'No key aaaaaaaaaa'],
    ['/deliveries?transaction=5', 404, 'No transaction 5 was ever recorded'],
    ['/deliveries?after=nothing', 404, 'there is no delivery nothing to continue after'],
    ['/deliveries/nothing', 404, 'There is no such delivery'],
    ['/transactions/5', 404, 'No event of it was ever recorded here'],
    ['/transactions?id=x', 400, 'x is not the id of a transaction'],
    ['/accounts/5', 404, 'No account with this id'],
    ['/keys/aaaaaaaaaa', 404, 'No key has this prefix'],
    [`/accounts?q=${'x'.repeat(3_000)}`, 400, 'too long'],
    ['/keys/a/b', 404, 'There is no such page'],
    ['/constructor', 404, 'There is no such page'],
    ['/keys/%ff', 404, 'There is no such page'],
  ])('%s is %i: %s', async (path, status, text) => {
    const answer = await ask(`${push.service.opsUrl}${path}`);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(text);
  });

  test('a page that has not changed is answered with 304 and the time of its data', async () => {
    const first = await ask(`${push.service.opsUrl}/accounts`);
    const again = await ask(`${push.service.opsUrl}/accounts`, {
      headers: { 'If-None-Match': String(first.headers.etag) },
    });
    expect([again.status, again.text]).toEqual([304, '']);
    expect(String(again.headers['x-as-of'])).toMatch(/^2\d{3}-.*Z$/);
  });
});
