import { describe, expect, test } from 'vitest';
import { checkConsumers, checkLag, checkParked } from '../../../../src/operator/checks/checks/followers.ts';
import type { FollowerStatus } from '../../../../src/service/ops/followers.ts';

const NAMES = ['transactions', 'deliveries', 'notices'] as const;

function followers(
  changes: Partial<Record<(typeof NAMES)[number], Partial<FollowerStatus>>> = {},
): FollowerStatus[] {
  return NAMES.map((name) => ({
    ...{ name, position: 5, lag_seconds: 0, lag_events: 0, parked: 0, holder: 'one' },
    ...changes[name],
  }));
}

describe('parked events', () => {
  test('are wrong where somebody can retry them', () => {
    expect(checkParked(followers())).toMatchObject({ ok: true });
    expect(checkParked(followers({ transactions: { parked: 2 } }))).toMatchObject({
      ok: false,
      detail: 'transactions 2, deliveries 0, notices 0',
      do: expect.stringContaining('fuel projection parked retry --all'),
    });
    expect(checkParked(followers({ deliveries: { parked: 1 } }))).toMatchObject({
      ok: false,
      do: expect.stringContaining('fuel projection parked retry --all --follower deliveries'),
    });
    const both = checkParked(followers({ transactions: { parked: 2 }, deliveries: { parked: 1 } }));
    expect(both.do).toMatch(/^transactions: .*retry --all; deliveries: .*retry --all --follower deliveries$/);
    expect(checkParked(followers({ notices: { parked: 1 } })).do).toContain('retry --all --follower notices');
  });
});

describe('a follower without a process', () => {
  const none = { holder: null };

  test('is wrong once it has worked or has something to do', () => {
    expect(checkConsumers(followers(), { webhooks: 1 })).toMatchObject({ ok: true });
    expect(checkConsumers(followers({ deliveries: none, transactions: none }), { webhooks: 0 })).toEqual({
      ok: false,
      detail: 'no live process works on transactions, deliveries',
      do: 'fuel serve --role projector --role webhooks, or fuel serve for all roles',
    });
    const behind = { ...none, position: 0, lag_events: 3 };
    expect(checkConsumers(followers({ notices: behind }), { webhooks: 0 })).toMatchObject({ ok: false });
  });

  test('that never began and has nothing to do is wrong only where there are webhooks', () => {
    const idle = { ...none, position: 0 };
    const all = followers({ transactions: idle, deliveries: idle, notices: idle });
    expect(checkConsumers(all, { webhooks: 0 })).toMatchObject({ ok: true });
    expect(checkConsumers(all, { webhooks: 1 })).toMatchObject({
      ok: false,
      detail: 'no live process works on deliveries, notices',
    });
  });
});

test('a follower that is more than a minute behind is wrong', () => {
  expect(checkLag(followers({ notices: { lag_seconds: 60, lag_events: 2 } }))).toMatchObject({ ok: true });
  expect(checkLag(followers({ notices: { lag_seconds: 61, lag_events: null } }))).toMatchObject({
    ok: false,
    detail: expect.stringContaining('notices many events, 61 s'),
    do: expect.stringContaining('fuel projection status'),
  });
});
