import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteCoordination } from '../../src/coordination/sqlite.ts';
import { whileHolding } from '../../src/coordination/while-holding.ts';
import { pause } from '../../src/pause.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TTL_MS = 3_000;

function start() {
  const clock = new FakeClock();
  const coordination = openSqliteCoordination({ path: join(temporaryFolder(), 'control.db'), clock });
  onTestFinished(() => coordination.close());
  const stopping = new AbortController();
  const held = { coordination, lease: 'projector', holder: 'a', ttlMs: TTL_MS, signal: stopping.signal };
  return { clock, coordination, stopping, held };
}

test('a lease is renewed while the work lasts, and the result is the work’s', async () => {
  const { clock, coordination, held } = start();
  await coordination.acquire('projector', 'a', TTL_MS);
  const expiry = async () => (await coordination.holder('projector'))?.expiresAtMs ?? 0;
  const before = await expiry();
  const done = await whileHolding({ ...held, onMissed: () => undefined }, async (until) => {
    clock.advance(1_000);
    while ((await expiry()) === before) await pause(20, until);
    return 'done';
  });
  expect([done, await expiry()]).toEqual(['done', before + 1_000]);
});

test('a renewal that is refused or fails is reported, and ends the work where that is asked for', async () => {
  const { coordination, held } = start();
  await coordination.acquire('projector', 'other', 60_000);
  const missed: unknown[] = [];
  const onMissed = (error: unknown, endWork: () => void): void => {
    missed.push(error);
    endWork();
  };
  await whileHolding({ ...held, onMissed }, (until) => pause(60_000, until));
  const failing = { acquire: () => Promise.reject(new Error('unavailable')) };
  await whileHolding({ ...held, coordination: failing, onMissed }, (until) => pause(60_000, until));
  expect(missed).toEqual([undefined, new Error('unavailable')]);
});

test('the signal ends the work, and an error of the work is passed on', async () => {
  const { stopping, held } = start();
  const working = whileHolding({ ...held, onMissed: () => undefined }, (until) => pause(60_000, until));
  stopping.abort();
  await working;
  const failing = whileHolding({ ...held, onMissed: () => undefined }, () =>
    Promise.reject(new Error('burnt')),
  );
  await expect(failing).rejects.toThrow('burnt');
});

test('it ends after the renewal that is under way, which takes the lease once more, and starts no further one', async () => {
  const { held } = start();
  const begun = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<boolean>();
  let renewals = 0;
  const acquire = (): Promise<boolean> => {
    renewals++;
    begun.resolve();
    return answer.promise;
  };
  let hasEnded = false;
  const holding = whileHolding(
    { ...held, coordination: { acquire }, onMissed: () => undefined },
    () => begun.promise,
  ).then(() => {
    hasEnded = true;
  });
  await begun.promise;
  await nextTurn();
  expect(hasEnded).toBe(false);
  answer.resolve(true);
  await holding;
  await pause(1_100, new AbortController().signal);
  expect(renewals).toBe(1);
});

test('a renewal that failed is not the last one', async () => {
  const { held } = start();
  let renewals = 0;
  const acquire = (): Promise<boolean> => {
    renewals++;
    return renewals === 1 ? Promise.reject(new Error('unavailable')) : Promise.resolve(true);
  };
  const missed: unknown[] = [];
  const onMissed = (error: unknown): void => void missed.push(error);
  await whileHolding({ ...held, coordination: { acquire }, onMissed }, (until) => pause(2_200, until));
  expect([renewals, missed]).toEqual([2, [new Error('unavailable')]]);
});
