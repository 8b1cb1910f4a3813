import { expect, it } from 'vitest';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import { readSignature, signatureOf } from '../support/deliveries/webhook-receiver.ts';

const [OLD, NEW] = [1, 2].map((n) => Buffer.alloc(32, n).toString('base64')) as [string, string];

it('lets a master key go once the webhook secrets are rewrapped, and signatures stay the customers’ own', async () => {
  const push = await PushService.prepare({ FUEL_MASTER_KEY: OLD });
  const { service, receiver } = push;
  const rewrap = (FUEL_MASTER_KEY: string, ...args: string[]) =>
    service.fuel(['key', 'rewrap', '--json', ...args], { env: { FUEL_MASTER_KEY } });
  const received = async ({ account, path, secret }: Customer): Promise<void> => {
    const before = receiver.to(path).length;
    await push.push(account);
    const hook = (await receiver.received(path, before + 1)).at(-1);
    if (hook === undefined) throw new Error('nothing came');
    const { t, v1 } = readSignature(hook);
    expect(v1).toBe(signatureOf(secret, t, hook.text));
  };

  await service.start();
  const [kept, removed] = [await push.customer(1), await push.customer(2)];
  await received(kept);
  await service.done(['webhook', 'remove', removed.prefix]);
  expect((await rewrap(OLD)).json).toEqual({ rewrapped: 0, unchanged: 2, unreadable: 0 });
  expect(await rewrap(NEW)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/STORE_MISMATCH/),
  });
  await service.stop();

  await service.start({ FUEL_MASTER_KEY: `${NEW},${OLD}` });
  const first = await rewrap(`${NEW},${OLD}`, '--wait', '--actor', 'Ada');
  expect([first.code, first.stdout]).toEqual([0, '{"rewrapped":2,"unchanged":0,"unreadable":0}\n']);
  const second = await rewrap(`${NEW},${OLD}`);
  expect(second.json).toEqual({ rewrapped: 0, unchanged: 2, unreadable: 0 });
  expect(second.stderr).toContain('put another key first');
  await received(kept);
  const audit = await service.done(['audit', '--json', '--type', 'WebhookSecretRewrapped']);
  expect(audit.lines.map(({ actor, command }) => [actor, command])).toEqual(
    Array(2).fill(['Ada', 'fuel key rewrap']),
  );
  expect(audit.stdout).not.toContain(kept.secret);
  await service.stop();

  await service.start({ FUEL_MASTER_KEY: NEW });
  await received(kept);
  const again = await service.fuel(
    ['webhook', 'set', removed.prefix, receiver.url(removed.path), '--json', '--wait'],
    { env: { FUEL_MASTER_KEY: NEW } },
  );
  expect([again.code, again.json.webhook_secret]).toEqual([0, null]);
  await received(removed);
});
