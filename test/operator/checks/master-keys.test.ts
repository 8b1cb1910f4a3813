import { expect, test } from 'vitest';
import { judgeMasterKeys } from '../../../src/operator/checks/master-keys.ts';
import { SECRET } from '../../support/accounts/account-samples.ts';
import { said } from '../../support/checks/facts.ts';

const needed = SECRET.master_key_id;
const counts = new Map([[needed, 1]]);
const none = { recorded: [], otherFile: undefined };
/** Returns keys whose fingerprints are their ids. */
const keys = (...ids: string[]) => ids.map((id) => ({ master_key_id: id, fingerprint: id }));
const recordedAs = (...ids: string[]) => ids.map((id) => ({ id, fingerprint: id }));
const judged = (...of: Parameters<typeof judgeMasterKeys>) => said(judgeMasterKeys(...of));
const given = (...ids: string[]) =>
  judged(counts, keys(...ids), { ...none, recorded: recordedAs('old00000', needed) });

test('an older master key can be removed once it encrypts nothing', async () => {
  expect(await given(needed, 'old00000')).toMatchObject({
    ok: true,
    detail: `${needed} encrypts 1 webhook secret, old00000 encrypts 0 webhook secrets; can be removed from FUEL_MASTER_KEY: old00000`,
  });
});

test('an older master key that still encrypts secrets is needed', async () => {
  const { ok, detail } = await given('new00000', needed);
  expect(ok).toBe(true);
  expect(detail).toContain(`needed until fuel key rewrap has run: ${needed}`);
});

test('a master key that is needed and not given is wrong', async () => {
  expect(await given('new00000')).toMatchObject({
    ok: false,
    detail: `FUEL_MASTER_KEY lacks master key ${needed}, which encrypts 1 webhook secret`,
    do: expect.stringContaining('FUEL_MASTER_KEY'),
  });
  expect(await judged(counts, [], none)).toMatchObject({ ok: false });
  expect(await judged(new Map(), [], none)).toMatchObject({ ok: true });
});

test('a master key that the store never had means that its keys need to be issued again', async () => {
  const found = await judged(counts, keys('old00000'), { ...none, recorded: recordedAs('old00000') });
  expect(found).toMatchObject({
    ok: false,
    detail: `this store never had master key ${needed}, which encrypts 1 webhook secret`,
    do: expect.stringContaining('issue new keys'),
  });
});

test('nothing can be removed while a later key is newer than the first, whether it is recorded or not', async () => {
  for (const recorded of [[needed], [needed, 'new00000']]) {
    const { ok, detail } = await judged(counts, keys(needed, 'new00000'), {
      ...none,
      recorded: recordedAs(...recorded),
    });
    expect(ok).toBe(true);
    expect(detail).not.toContain('can be removed');
    expect(detail).toContain('newer than the first, and about to become the first in a rotation: new00000');
  }
});

test('a file with a key that is not given is wrong', async () => {
  const otherFile = '/var/lib/fuel/master.key';
  const recorded = recordedAs('old00000', needed);
  expect(await judged(counts, keys(needed), { recorded, otherFile })).toMatchObject({
    ok: false,
    detail: expect.stringContaining(
      '/var/lib/fuel/master.key holds a key that FUEL_MASTER_KEY does not have',
    ),
    do: expect.stringContaining('move /var/lib/fuel/master.key'),
  });
});
