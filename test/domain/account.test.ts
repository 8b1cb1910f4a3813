import { describe, expect, test } from 'vitest';
import { type Account, accessOf, type ProfilePeriod, profileAccess } from '../../src/domain/account.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { opened, profileSet } from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';

const at = (ms: number): string => formatDateTime(ms);
const on: AccountEvent = { type: 'IntegrationEnabled', data: { account_id: 7 } };
const off: AccountEvent = { type: 'IntegrationDisabled', data: { account_id: 7 } };

/** The events with their times. */
type History = readonly (readonly [atMs: number, event: AccountEvent])[];

function accountAfter(...history: History): Account {
  const events = [[0, opened()] as const, ...history].map(([atMs, event]) => ({ atMs, event }));
  return foldAccount(events) as Account;
}

function accountWith(...periods: readonly [fromMs: number, toMs: number | null][]): Account {
  const profiles = new Map<string, ProfilePeriod>();
  for (const [index, [fromMs, toMs]] of periods.entries()) profiles.set(`profile ${index}`, { fromMs, toMs });
  return { ...accountAfter(), profiles };
}

describe('the charging profiles of an account', () => {
  const endOf = (account: Account, nowMs: number) => {
    const profile = profileAccess(account, nowMs);
    return profile.active ? profile.endsAtMs : 'none';
  };

  test('are none at first', () => {
    expect(profileAccess(accountWith(), 0)).toEqual({ active: false });
  });

  test('give access from the start of one to just before its end', () => {
    const account = accountWith([100, 200]);
    expect([99, 100, 199, 200].map((nowMs) => profileAccess(account, nowMs))).toEqual([
      { active: false, startsAtMs: 100 },
      { active: true, sinceMs: 100, endsAtMs: 200 },
      { active: true, sinceMs: 100, endsAtMs: 200 },
      { active: false, sinceMs: 200 },
    ]);
  });

  test('give it until the end of the latest of several that are current', () => {
    expect(endOf(accountWith([0, 300], [0, 500], [0, 400]), 10)).toBe(500);
  });

  test('give it without an end where an open-ended one is current', () => {
    expect(endOf(accountWith([0, 300], [0, null], [0, 400]), 10)).toBeNull();
  });

  test('do not move the end for a renewal until it starts', () => {
    const account = accountWith([0, 300], [300, null]);
    expect([endOf(account, 299), endOf(account, 300)]).toEqual([300, null]);
  });
});

describe('access', () => {
  test('is open with the integration on and a profile that is current', () => {
    const account = accountAfter([1, on], [2, profileSet(at(0), at(100))]);
    expect(accessOf(account, 99)).toEqual({ open: true, sinceMs: 2, endsAtMs: 100 });
    expect(accessOf(account, 100)).toMatchObject({ open: false, code: 'NO_ACTIVE_CHARGING_PROFILE' });
  });

  test('is refused by the first of the checks that fails, since it does', () => {
    const profile = profileSet(at(0), at(100));
    const since = (nowMs: number, ...history: History) => {
      const access = accessOf(accountAfter(...history), nowMs);
      return access.open ? 'open' : [access.code, access.sinceMs];
    };
    expect(since(5)).toEqual(['API_INTEGRATION_NOT_ENABLED', 0]);
    expect(since(150, [1, on], [2, profile], [120, off])).toEqual(['API_INTEGRATION_NOT_ENABLED', 120]);
    expect(since(5, [1, on])).toEqual(['NO_ACTIVE_CHARGING_PROFILE', 1]);
    expect(since(150, [1, on], [2, profile])).toEqual(['NO_ACTIVE_CHARGING_PROFILE', 100]);
    expect(since(150, [1, profile], [120, on])).toEqual(['NO_ACTIVE_CHARGING_PROFILE', 120]);
    expect(accessOf(undefined, 5)).toEqual({ open: false, code: 'SERVICE_UNAVAILABLE' });
  });

  test('is refused since a profile was shortened or moved, not since the end that it was given', () => {
    const begun = [
      [1, on],
      [2, profileSet(at(0), null)],
    ] as const;
    const shortened = accountAfter(...begun, [80, profileSet(at(0), at(20))]);
    const moved = accountAfter(...begun, [80, profileSet(at(500), null)]);
    const renewed = accountAfter(...begun, [80, profileSet(at(0), at(20))], [90, profileSet(at(0), at(120))]);
    expect(accessOf(shortened, 100)).toMatchObject({ open: false, sinceMs: 80 });
    expect(accessOf(moved, 100)).toMatchObject({ open: false, sinceMs: 80, opensAtMs: 500 });
    expect(accessOf(renewed, 130)).toMatchObject({ open: false, sinceMs: 120 });
  });

  test('opens with the first of the future profiles', () => {
    const later = [1, profileSet(at(9_000), null, 'later')] as const;
    const sooner = [1, profileSet(at(4_000), at(5_000), 'sooner')] as const;
    expect(accessOf(accountAfter([1, on], later, sooner), 10)).toMatchObject({ opensAtMs: 4_000 });
    expect(accessOf(accountAfter([1, on], sooner, later), 10)).toMatchObject({ opensAtMs: 4_000 });
    expect(accessOf(accountAfter([1, on], later), 10)).toMatchObject({ opensAtMs: 9_000 });
  });

  test('opens at no known time where the profiles are over, or end before they start, or the integration is off', () => {
    const opensAt = (...history: History) => {
      const access = accessOf(accountAfter(...history), 1_000);
      return access.open ? 'open' : access.opensAtMs;
    };
    expect(opensAt([1, on], [2, profileSet(at(0), at(999))])).toBeUndefined();
    expect(opensAt([2, profileSet(at(4_000), null)])).toBeUndefined();
    expect(opensAt([1, on])).toBeUndefined();
    expect(opensAt([1, on], [2, profileSet(at(4_000), at(4_000))])).toBeUndefined(); // no command records such an event
  });
});
