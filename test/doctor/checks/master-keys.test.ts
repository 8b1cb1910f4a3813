import { expect, test } from 'vitest';
import { checkMasterKeys } from '../../../src/doctor/checks/master-keys.ts';
import { keyIssued, opened, SECRET, webhookSet } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

const directory = directoryOf(opened(), keyIssued(), webhookSet());
const needed = SECRET.master_key_id;
const given = (...ids: string[]) => checkMasterKeys(directory, { ids: () => ids });

test('an older master key can go once it encrypts nothing', () => {
  expect(given(needed, 'old00000')).toMatchObject({
    ok: true,
    detail: `${needed} encrypts 1 webhook secrets, old00000 encrypts 0 webhook secrets; can go from FUEL_MASTER_KEY: old00000`,
  });
});

test('an older master key that still encrypts secrets is needed', () => {
  const { ok, detail } = given('new00000', needed);
  expect(ok).toBe(true);
  expect(detail).toContain(`needed until fuel key rewrap has run: ${needed}`);
});

test('a master key that is needed and not given is wrong', () => {
  expect(given('new00000')).toMatchObject({
    ok: false,
    detail: `not given: master key ${needed} of 1 webhook secrets`,
    do: expect.stringContaining('FUEL_MASTER_KEY'),
  });
  expect(checkMasterKeys(directory, undefined)).toMatchObject({ ok: false });
  expect(checkMasterKeys(directoryOf(opened()), undefined)).toMatchObject({ ok: true });
});
