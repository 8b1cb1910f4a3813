import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../src/errors.ts';
import { silentLog } from '../../src/log.ts';
import { Standing } from '../../src/ops/standing.ts';
import { Membership } from '../../src/service/membership.ts';
import { until } from '../support/waiting.ts';

function member(head: () => Promise<number>) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const standing = new Standing();
  return {
    standing,
    membership: new Membership({ head }, { log: silentLog, signal: ended.signal, standing }),
  };
}

test('a process that joins must have applied what the log held when the others learnt of it', async () => {
  let end = 10;
  const { membership, standing } = member(async () => end);
  expect(standing.hasReached(10)).toBe(false);
  membership.joined();
  await until(async () => standing.hasReached(10), 5_000);
  expect(standing.hasReached(9)).toBe(false);
  end = 20; // recorded since: commands wait for it
  expect(standing.hasReached(10)).toBe(true);
});

test('a process that joins again must reach the end of that time, and nothing counts until it is known', async () => {
  let next = Promise.withResolvers<number>();
  const { membership, standing } = member(() => next.promise);
  membership.joined();
  next.resolve(10);
  await until(async () => standing.hasReached(10), 5_000);
  next = Promise.withResolvers<number>();
  membership.joined();
  expect(standing.hasReached(10)).toBe(false);
  next.resolve(20);
  await until(async () => standing.hasReached(20), 5_000);
  expect(standing.hasReached(19)).toBe(false);
});

test('an event store that is unavailable is asked again', async () => {
  let tries = 0;
  const { membership, standing } = member(async () => {
    tries += 1;
    if (tries === 1) throw new FuelError('STORE_UNAVAILABLE', 'gone');
    return 5;
  });
  membership.joined();
  await until(async () => standing.hasReached(5), 5_000);
});
