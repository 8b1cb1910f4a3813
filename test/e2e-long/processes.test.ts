import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  importEvents,
  linesOf,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

describe('several processes on one store', () => {
  it('may each have some of the roles', async () => {
    const dataDir = join(folder(), 'data');
    const projector = await new ServiceProcess({ dataDir, args: ['--role', 'projector'] }).start();
    const api = await new ServiceProcess({ dataDir, args: ['--role', 'api'] }).start();
    expect(projector.url).toBe('');
    const { key } = await openAccount(api);
    await importEvents(api, [confirmed(501)]);
    const answered = async () => (await api.get(`/transactions?${SEPTEMBER}`, { key })).body.data.length;
    expect(await answered()).toBe(1);
    await projector.kill();
    await api.done(['transaction', 'import', '-'], { stdin: linesOf([confirmed(502)]) });
    expect(await answered()).toBe(1);
    await projector.start();
    await until(async () => (await answered()) === 2);
  });

  it('take over within 10 s what a killed one had in flight', async () => {
    const push = await PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: '2s,2s' });
    const { env, receiver } = push;
    const { dataDir } = push.service;
    const { account, path } = await push.customer(1);
    receiver.answer(path, () => undefined);
    await push.record(push.made(account, 8), { wait: false });
    await until(() => receiver.to(path).length >= 8);
    await push.service.kill();
    receiver.answer(path, answerWith(200));
    await new ServiceProcess({ env, dataDir, args: ['--role', 'webhooks'] }).start();
    await push.settled(account, 'delivered', 8);
  });
});
