import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../src/errors.ts';
import { silentLog } from '../../src/log.ts';
import { Membership } from '../../src/service/membership.ts';
import { until } from '../support/waiting.ts';

function member(head: () => Promise<number>) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  return new Membership({ head }, { log: silentLog, signal: ended.signal });
}

test('a process that joins must have applied what the log held when the others learnt of it', async () => {
  let end = 10;
  const membership = member(async () => end);
  expect(membership.hasReached(10)).toBe(false);
  membership.joined();
  await until(async () => membership.hasReached(10), 5_000);
  expect(membership.hasReached(9)).toBe(false);
  end = 20; // recorded since: commands wait for it
  expect(membership.hasReached(10)).toBe(true);
});

test('a process that joins again must reach the end of that time, and nothing counts until it is known', async () => {
  let next = Promise.withResolvers<number>();
  const membership = member(() => next.promise);
  membership.joined();
  next.resolve(10);
  await until(async () => membership.hasReached(10), 5_000);
  next = Promise.withResolvers<number>();
  membership.joined();
  expect(membership.hasReached(10)).toBe(false);
  next.resolve(20);
  await until(async () => membership.hasReached(20), 5_000);
  expect(membership.hasReached(19)).toBe(false);
});

test('an event store that is unavailable is asked again', async () => {
  let tries = 0;
  const membership = member(async () => {
    tries += 1;
    if (tries === 1) throw new FuelError('STORE_UNAVAILABLE', 'gone');
    return 5;
  });
  membership.joined();
  await until(async () => membership.hasReached(5), 5_000);
});
