import { expect, onTestFinished, test } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { ConnectProxy } from '../support/proxies/connect-proxy.ts';

const ACCOUNT = 1;

test('what arrives while the proxy is dead is delivered when it is back, and no attempt of the time between counts', async () => {
  const proxy = new ConnectProxy({ credentials: 'fuel:pepper' });
  onTestFinished(() => proxy.kill());
  await proxy.start();
  const at = `127.0.0.1:${proxy.port}`;
  const push = await PushService.start({ FUEL_WEBHOOK_PROXY: `http://fuel:pepper@${at}` });
  const { path, prefix } = await push.customer(ACCOUNT);
  await push.push(ACCOUNT);
  await push.settled(ACCOUNT, 'delivered');
  expect(proxy.asked()).toEqual([`127.0.0.1:${new URL(push.receiver.url(path)).port}`]);

  await proxy.kill();
  await push.push(ACCOUNT, 3);
  const line = await push.service.logged(({ msg }) => String(msg).startsWith('webhooks wait'));
  expect(line).toMatchObject({ proxy: at, reason: expect.stringContaining('ECONNREFUSED') });
  await push.reached(ACCOUNT, 'pending', 3);
  const doctor = await push.service.fuel(['doctor', '--json']);
  expect(doctor.lines).toContainEqual(
    expect.objectContaining({ check: 'webhook-proxy', ok: false, detail: expect.stringContaining(at) }),
  );
  expect(JSON.stringify([doctor.lines, push.service.output])).not.toContain('pepper');

  await proxy.start();
  await push.settled(ACCOUNT, 'delivered', 4);
  for (const { id } of await push.list('--key', prefix))
    expect((await push.show(id)).attempts).toMatchObject([{ status: 200 }]);
});
