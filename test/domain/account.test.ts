import { expect, test } from 'vitest';
import type { Account, ProfilePeriod } from '../../src/domain/account.ts';
import { activeProfile } from '../../src/domain/account.ts';
import { opened } from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';

function accountWith(...periods: readonly [fromMs: number, toMs: number | null][]): Account {
  const account = foldAccount([{ event: opened(), atMs: 0 }]) as Account;
  const profiles = new Map<string, ProfilePeriod>();
  for (const [index, [fromMs, toMs]] of periods.entries()) profiles.set(`profile ${index}`, { fromMs, toMs });
  return { ...account, profiles };
}

test('a new account has no charging profile', () => {
  expect(activeProfile(accountWith(), 0)).toBeUndefined();
});

test('a profile gives access from its start to just before its end', () => {
  const account = accountWith([100, 200]);
  const access = [99, 100, 199, 200].map((nowMs) => activeProfile(account, nowMs));
  expect(access).toEqual([undefined, { endsAtMs: 200 }, { endsAtMs: 200 }, undefined]);
});

test('where several profiles are current, access ends with the latest', () => {
  expect(activeProfile(accountWith([0, 300], [0, 500], [0, 400]), 10)).toEqual({ endsAtMs: 500 });
});

test('an open-ended profile that is current leaves access without an end', () => {
  expect(activeProfile(accountWith([0, 300], [0, null], [0, 400]), 10)).toEqual({ endsAtMs: null });
});

test('a renewal that starts at the end of the current profile does not move the end until then', () => {
  const account = accountWith([0, 300], [300, null]);
  expect(activeProfile(account, 299)).toEqual({ endsAtMs: 300 });
  expect(activeProfile(account, 300)).toEqual({ endsAtMs: null });
});
