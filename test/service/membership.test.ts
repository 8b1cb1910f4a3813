import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { isMember } from '../../src/service/api/is-member.ts';
import { Membership } from '../../src/service/membership.ts';
import { Standing } from '../../src/service/ops/standing.ts';
import { memoryLog } from '../support/service/api.ts';
import { until } from '../support/waiting.ts';

function member(head: () => Promise<number>) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const standing = new Standing();
  const lines: Record<string, unknown>[] = [];
  const membership = new Membership({ head }, { log: memoryLog(lines), signal: ended.signal, standing });
  return { standing, membership, lines, end: () => ended.abort() };
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

test('an answer to an earlier join does not count for a later one', async () => {
  const heads = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  let asked = 0;
  const { membership, standing } = member(() => heads[asked++]?.promise ?? Promise.resolve(0));
  membership.joined();
  membership.joined();
  heads[0]?.resolve(10);
  await new Promise(setImmediate);
  expect(standing.hasReached(10)).toBe(false);
  heads[1]?.resolve(20);
  await until(async () => standing.hasReached(20), 5_000);
  expect(standing.hasReached(10)).toBe(false);
});

test('a process that ends while the end of the log is asked for becomes no member, and says nothing', async () => {
  for (const outcome of [new FuelError('STORE_UNAVAILABLE', 'gone'), new Error('closed')]) {
    const head = Promise.withResolvers<number>();
    const { membership, standing, lines, end } = member(() => head.promise);
    membership.joined();
    end();
    head.reject(outcome);
    await new Promise(setImmediate);
    expect([standing.hasReached(Number.MAX_SAFE_INTEGER), lines]).toEqual([false, []]);
  }
});

test('an end of the log that can not be read is a line, and no request is served', async () => {
  const { membership, standing, lines } = member(() => Promise.reject(new TypeError('a fault')));
  membership.joined();
  await until(async () => lines.length === 1, 5_000);
  expect(lines[0]).toMatchObject({ level: 50, msg: expect.stringContaining('no request is served') });
  expect(standing.hasReached(Number.MAX_SAFE_INTEGER)).toBe(false);
});

test('without a report a directory is judged by while it is at the end of an embedded log', () => {
  const standing = new Standing();
  const at = (end: (() => number) | undefined) =>
    isMember({ standing, engines: { store: () => (end === undefined ? {} : { end }) } }, 10);
  expect(at(() => 10)).toBe(true);
  expect(at(() => 11)).toBe(false);
  expect(at(undefined)).toBe(false);
  const failing = (code: 'STORE_UNAVAILABLE' | 'STORE_DAMAGED') => () => {
    throw new FuelError(code, 'away');
  };
  expect(at(failing('STORE_UNAVAILABLE'))).toBe(false);
  expect(() => at(failing('STORE_DAMAGED'))).toThrow('away');
});
