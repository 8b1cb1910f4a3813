import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { accessState, Standing, whenReady } from '../../../src/service/ops/standing.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

const isMember = (standing: Standing, nowMs: number, position: number) =>
  standing.isKnown(nowMs) && standing.hasReached(position);

test('a process is a member once the others know of it and its directory is as far as it must be', () => {
  const standing = new Standing();
  expect(isMember(standing, 1_000, 10)).toBe(false);
  standing.mustReach(10);
  standing.knownUntil(2_000);
  expect(isMember(standing, 1_999, 10)).toBe(true);
  expect(isMember(standing, 2_000, 10)).toBe(false);
  expect(isMember(standing, 1_999, 9)).toBe(false);
  standing.mustReach(undefined);
  expect(isMember(standing, 1_999, Number.MAX_SAFE_INTEGER)).toBe(false);
});

test('position 0 is one that a directory reaches', () => {
  const standing = new Standing();
  expect(standing.hasReached(0)).toBe(false);
  standing.mustReach(0);
  expect(standing.hasReached(0)).toBe(true);
});

function member(head: () => Promise<number>) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const standing = new Standing();
  const lines: Record<string, unknown>[] = [];
  const join = () => standing.join({ head }, { log: memoryLog(lines), signal: ended.signal });
  return { standing, join, lines, end: () => ended.abort() };
}

test('a process that joins must have applied what the log held when the others learnt of it', async () => {
  let end = 10;
  const { join, standing } = member(async () => end);
  expect(standing.hasReached(10)).toBe(false);
  join();
  await until(() => standing.hasReached(10));
  expect(standing.hasReached(9)).toBe(false);
  end = 20; // recorded since then, and commands wait for it
  expect(standing.hasReached(10)).toBe(true);
});

test('a process that joins again must reach the end of that time, and nothing counts until it is known', async () => {
  let next = Promise.withResolvers<number>();
  const { join, standing } = member(() => next.promise);
  join();
  next.resolve(10);
  await until(() => standing.hasReached(10));
  next = Promise.withResolvers<number>();
  join();
  expect(standing.hasReached(10)).toBe(false);
  next.resolve(20);
  await until(() => standing.hasReached(20));
  expect(standing.hasReached(19)).toBe(false);
});

test('an event store that is unavailable is asked again', async () => {
  let tries = 0;
  const { join, standing } = member(async () => {
    tries += 1;
    if (tries === 1) throw new FuelError('STORE_UNAVAILABLE', 'gone');
    return 5;
  });
  join();
  await until(() => standing.hasReached(5));
});

test('an answer to an earlier join does not count for a later one', async () => {
  const heads = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  let asked = 0;
  const { join, standing } = member(() => heads[asked++]?.promise ?? Promise.resolve(0));
  join();
  join();
  heads[0]?.resolve(10);
  await new Promise(setImmediate);
  expect(standing.hasReached(10)).toBe(false);
  heads[1]?.resolve(20);
  await until(() => standing.hasReached(20));
  expect(standing.hasReached(10)).toBe(false);
});

test('a process that ends while the end of the log is asked for becomes no member, and says nothing', async () => {
  for (const outcome of [new FuelError('STORE_UNAVAILABLE', 'gone'), new Error('closed')]) {
    const head = Promise.withResolvers<number>();
    const { join, standing, lines, end } = member(() => head.promise);
    join();
    end();
    head.reject(outcome);
    await new Promise(setImmediate);
    expect([standing.hasReached(Number.MAX_SAFE_INTEGER), lines]).toEqual([false, []]);
  }
});

test('an end of the log that cannot be read is a line, and no request is served', async () => {
  const { join, standing, lines } = member(() => Promise.reject(new TypeError('a fault')));
  join();
  await until(() => lines.length === 1);
  expect(lines[0]).toMatchObject({ level: 50, msg: expect.stringContaining('no request is served') });
  expect(standing.hasReached(Number.MAX_SAFE_INTEGER)).toBe(false);
});

const rows = { condition: true } as const;

test('without a report a directory is judged by while it is at the end of an embedded log', () => {
  const live = { isCaughtUp: true, silenceMs: 0, directory: { position: 10 } };
  const at = (end: (() => number) | undefined) =>
    accessState({
      live,
      rows,
      maxAgeMs: 1,
      standing: new Standing(),
      store: end === undefined ? {} : { end },
    });
  expect(at(() => 10)).toBe('ready');
  expect(at(() => 11)).toBe('unavailable');
  expect(at(undefined)).toBe('unavailable');
  const failing = (code: 'STORE_UNAVAILABLE' | 'STORE_DAMAGED') => () => {
    throw new FuelError(code, 'away');
  };
  expect(at(failing('STORE_UNAVAILABLE'))).toBe('unavailable');
  expect(() => at(failing('STORE_DAMAGED'))).toThrow('away');
});

test('ready is waited for, until the signal ends that', async () => {
  const standing = new Standing();
  const live = { isCaughtUp: true, silenceMs: 0, directory: { position: 10 } };
  const ended = new AbortController();
  let isReady = false;
  const ready = whenReady({ live, rows, maxAgeMs: 1, standing, store: {} }, ended.signal).then(() => {
    isReady = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(isReady).toBe(false);
  standing.mustReach(10);
  standing.knownUntil(Number.MAX_SAFE_INTEGER);
  await ready;
  ended.abort();
  await whenReady({ live, rows, maxAgeMs: 1, standing: new Standing(), store: {} }, ended.signal);
});
