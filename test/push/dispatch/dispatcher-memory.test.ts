import { expect, test } from 'vitest';
import { areCollected } from '../../support/collected.ts';
import { OK, sentIn } from '../../support/deliveries/push.ts';
import { pushMachine } from '../../support/deliveries/push-machine.ts';

test('nothing is kept of an attempt that has ended', async () => {
  const m = await pushMachine();
  const requests: WeakRef<object>[] = [];
  m.sender.send = async (request) => {
    requests.push(new WeakRef(request));
    return sentIn(1, OK);
  };
  await m.push(501, 502, 503);
  await m.scheduler.advance(10);
  expect(requests).toHaveLength(3);
  expect(await areCollected(requests)).toBe(true);
});
