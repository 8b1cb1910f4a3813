import { expect, test } from 'vitest';
import { Standing } from '../../../src/service/ops/standing.ts';

test('a process is a member once the others know of it and its directory is as far as it must be', () => {
  const main = new Standing();
  const thread = new Standing(main.memory);
  expect(thread.isMember(1_000, 10)).toBe(false);
  main.mustReach(10);
  main.knownUntil(2_000);
  expect(thread.isMember(1_999, 10)).toBe(true);
  expect(thread.isMember(2_000, 10)).toBe(false);
  expect(thread.isMember(1_999, 9)).toBe(false);
  main.mustReach(undefined);
  expect(thread.isMember(1_999, Number.MAX_SAFE_INTEGER)).toBe(false);
});

test('position 0 is one that a directory reaches', () => {
  const standing = new Standing();
  expect(standing.hasReached(0)).toBe(false);
  standing.mustReach(0);
  expect(standing.hasReached(0)).toBe(true);
});

test('every thread sees that the process stops', () => {
  const main = new Standing();
  const thread = new Standing(main.memory);
  expect(thread.isStopping).toBe(false);
  main.stopping();
  expect(thread.isStopping).toBe(true);
});
