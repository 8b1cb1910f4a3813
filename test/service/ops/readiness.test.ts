import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { type CheckedEngine, EngineHealth } from '../../../src/service/engines/engine-health.ts';
import { type ReadinessConditions, readiness } from '../../../src/service/ops/readiness.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const WELL = { accounts_up_to_date: true, not_stopping: true };
const OLD = 'the rows of accounts have not heard from the event store for too long';

/** The readiness of a process on engines that answer or not. */
function readinessWith({
  away = [],
  ...given
}: Partial<ReadinessConditions> & { readonly away?: readonly CheckedEngine['name'][] } = {}) {
  const engine = (name: CheckedEngine['name']): CheckedEngine => ({
    name,
    serves: name === 'eventstoredb' ? ['events'] : ['tables'],
    ping: async () => {
      if (away.includes(name)) throw new FuelError('STORE_UNAVAILABLE', name);
    },
  });
  const engines = new EngineHealth([engine('eventstoredb'), engine('mongodb')], new FakeClock());
  const of = { rows: { condition: true } as const, isStopping: false, engines, writes: true };
  return readiness({ ...of, subscription: undefined, disk: undefined, ...given });
}

describe('a process is ready', () => {
  test('while the rows of accounts are up to date and its engines answer', async () => {
    expect(await readinessWith()).toEqual({
      ready: true,
      checks: { ...WELL, eventstoredb: true, mongodb: true },
    });
    expect(await readinessWith({ rows: { condition: OLD } })).toMatchObject({
      ready: false,
      checks: { accounts_up_to_date: false },
      reasons: { accounts_up_to_date: OLD },
    });
  });

  test.each([true, false])('on a full disk only if nothing of it writes: %s', async (writes) => {
    const refusal = 'the disk of /data is full';
    expect(await readinessWith({ disk: async () => ({ refusal }), writes })).toMatchObject({
      ready: !writes,
      checks: { disk: false },
      reasons: { disk: refusal },
    });
  });

  test('until it stops', async () => {
    expect(await readinessWith({ isStopping: true })).toMatchObject({
      ready: false,
      checks: { ...WELL, not_stopping: false },
      reasons: { not_stopping: 'the process is stopping' },
    });
  });

  test('without the event store, as long as the rows are not too old', async () => {
    expect(await readinessWith({ away: ['eventstoredb'] })).toEqual({
      ready: true,
      checks: { ...WELL, eventstoredb: false, mongodb: true },
      reasons: { eventstoredb: 'eventstoredb' },
    });
  });

  test('not without MongoDB', async () => {
    expect(await readinessWith({ away: ['mongodb'] })).toEqual({
      ready: false,
      checks: { ...WELL, eventstoredb: true, mongodb: false },
      reasons: { mongodb: 'mongodb' },
    });
  });

  test('without a subscription that was connected once', async () => {
    const subscription = { missing: 'NotLeader' as string | undefined, wasReady: false };
    const waiting = {
      checks: { ...WELL, subscription_connected: false, eventstoredb: true, mongodb: true },
      reasons: { subscription_connected: 'NotLeader' },
    };
    expect(await readinessWith({ subscription })).toEqual({ ready: false, ...waiting });
    subscription.wasReady = true;
    expect(await readinessWith({ subscription })).toEqual({ ready: true, ...waiting });
    subscription.missing = undefined;
    expect(await readinessWith({ subscription })).toMatchObject({
      ready: true,
      checks: { subscription_connected: true },
    });
  });
});
