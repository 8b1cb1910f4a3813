import { expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { holders } from '../support/holders.ts';
import { linesOf, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const MARK = 'Erasmus Gone';
const DRIVER = 'Redd Acted';

it.skipIf(onServers)(
  'no file holds a byte of an erased record or a redacted name, with the service running and readers at work',
  async () => {
    const push = await PushService.start();
    const { service, receiver } = push;
    const { account, key, path } = await push.customer(7);
    // The receiver's answer is kept, and may repeat the record.
    receiver.answer(path, (response, hook) => {
      response.setHeader('X-Echo', encodeURIComponent(hook.body.data.transaction.driver.name));
      response.end(hook.text);
    });
    const marked = push.made(account, 1, { driver: { id: 77, name: MARK, mobile_number: null } });
    const named = push.made(account, 1, { driver: { id: 78, name: DRIVER, mobile_number: null } });
    const lines = [...push.made(account, 40), ...marked, ...named, ...push.made(account, 40)];
    const id = marked[0]?.data.transaction_id;
    await service.done(['transaction', 'import', '-', '--wait'], { stdin: linesOf(lines) });
    await push.settled(account, 'delivered', lines.length);
    expect(holders(service.dataDir, MARK)).not.toEqual([]);

    let reading = true;
    const readers = Array.from({ length: 4 }, async () => {
      while (reading) {
        const { status } = await service.get(`/transactions?${SEPTEMBER}`, { key });
        expect([200, 429]).toContain(status);
      }
    });
    const erased = await service.fuel([
      'transaction',
      'erase',
      String(id),
      '--reason',
      'asked for',
      '--yes',
      '--json',
    ]);
    const left = holders(service.dataDir, MARK);
    expect(holders(service.dataDir, DRIVER)).not.toEqual([]);
    const who = ['78', '--account', String(account)];
    const redacted = await service.fuel(['driver', 'redact', ...who, '--reason', 'asked for', '--json']);
    const leftOfDriver = holders(service.dataDir, DRIVER);
    reading = false;
    await Promise.all(readers);
    expect([erased.code, erased.json]).toEqual([0, { id, erased: true }]);
    expect(left).toEqual([]);
    expect([redacted.code, leftOfDriver]).toEqual([0, []]);
    expect((await service.ops('/readyz')).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(holders(service.dataDir, MARK, DRIVER)).toEqual([]);
  },
);
