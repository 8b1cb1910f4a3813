import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';

describe('an address that was permitted once', () => {
  it('is judged again at each attempt, by what it then resolves to', async () => {
    const push = await PushService.start();
    const byName = await push.customer(1);
    const byAddress = await push.customer(2);
    const local = push.receiver.url(byAddress.path).replace('localhost', '127.0.0.1');
    await push.service.done(['webhook', 'set', byAddress.prefix, local]);
    await push.service.done(['webhook', 'set', byName.prefix, `https://${hostname()}.localhost/hook`]);
    await push.service.stop();
    await push.service.start({ FUEL_WEBHOOK_ALLOW_PRIVATE: 'false' });
    await push.record([...push.made(1, 1), ...push.made(2, 1)]);
    for (const { account, prefix } of [byName, byAddress]) {
      await push.settled(account, 'failed');
      const [line] = await push.list('--key', prefix);
      const { attempts } = await push.show(line.id);
      expect(attempts.map(({ error }: { error: { kind: string } }) => error.kind)).toEqual(
        Array.from({ length: 3 }, () => 'forbidden'),
      );
    }
    expect(push.receiver.hooks).toEqual([]);
  });
});
