import { expect, test } from 'vitest';
import type { Coordination } from '../../../../src/base/coordination/coordination.ts';
import { FuelError } from '../../../../src/base/errors.ts';
import { beforeCall } from '../../../support/transactions/projector.ts';
import { projected } from './rebuilding.ts';

test('a rebuild that has lost its lease while the store was away continues once it has it again', async () => {
  const { rebuild, view, coordination, ids, operations } = await projected();
  const renewed = Promise.withResolvers<void>();
  let calls = 0;
  const failing: Coordination = {
    ...coordination,
    async acquire(...given) {
      calls += 1;
      if (calls === 2) {
        renewed.resolve();
        return false;
      }
      if (calls === 3) throw new FuelError('STORE_UNAVAILABLE', 'away');
      return coordination.acquire(...given);
    },
    release: (lease, holder) => coordination.release(lease, holder),
  };
  let builds = 0;
  const slow = beforeCall(view, 'startBuild', () => void builds++);
  const late = new Proxy(slow, {
    get: (whole, name) =>
      name === 'apply' && calls < 2
        ? async (...given: Parameters<typeof view.apply>) => {
            await renewed.promise;
            return whole.apply(...given);
          }
        : Reflect.get(whole, name),
  });
  expect((await rebuild({ view: late, coordination: failing })).outcome).toBe('switched');
  expect([calls, builds]).toEqual([4, 2]);
  expect(await ids()).toEqual([3, 1]);
  expect(await operations()).toHaveLength(1);
});
