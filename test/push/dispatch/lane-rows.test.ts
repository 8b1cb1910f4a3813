import { expect, test } from 'vitest';
import { KEYS } from '../../../src/accounts/rows/tables.ts';
import { silentLog } from '../../../src/base/log.ts';
import { LaneRows } from '../../../src/push/dispatch/lane-rows.ts';
import { change } from '../../../src/tables/tables.ts';
import { keyIssued, opened, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { rowsOfEvents } from '../../support/accounts/kept-rows.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const OTHER = 'b2c3d4e5f6';

/** Lanes of an account without access, of which one was looked at. */
async function shutLane() {
  const clock = new FakeClock();
  const events = [opened(), keyIssued(), webhookSet(), keyIssued({ prefix: OTHER })];
  const rows = await rowsOfEvents(events, clock);
  const queue = { change: async () => 0 };
  const lanes = new LaneRows({ rows, queue, environment: 'staging', clock, log: silentLog });
  await lanes.look([PREFIX]);
  await lanes.changed(); // the first look knows no earlier one, so it forgets every lane
  await lanes.look([PREFIX]);
  let position = 100;
  const put = async (prefix: string) => rows.write([change(KEYS, prefix, { position: ++position })]);
  return { lanes, put };
}

test('a lane that is not open is looked at again once its key has changed, and not when others have', async () => {
  const { lanes, put } = await shutLane();
  expect(lanes.of(PREFIX)?.kind).not.toBe('open');
  await put(OTHER);
  expect(await lanes.changed()).toBe(false);
  expect(lanes.of(PREFIX)).toBeDefined();
  await put(PREFIX);
  expect(await lanes.changed()).toBe(true);
  expect(lanes.of(PREFIX)).toBeUndefined();
});

test('a lane whose account gets its profile soon is looked at again at that moment', async () => {
  const clock = new FakeClock();
  const enabled = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;
  const fromMs = clock.now() + 2_000;
  const profile = profileSet(new Date(fromMs).toISOString(), null);
  const rows = await rowsOfEvents([opened(), enabled, profile, keyIssued(), webhookSet()], clock);
  const queue = { change: async () => 0 };
  const lanes = new LaneRows({ rows, queue, environment: 'staging', clock, log: silentLog });
  await lanes.look([PREFIX]);
  expect(lanes.nextAtMs([PREFIX])).toBe(fromMs);
});
