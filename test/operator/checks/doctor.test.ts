import { expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { right } from '../../../src/operator/checks/check.ts';
import { within } from '../../../src/operator/checks/doctor.ts';
import { said } from '../../support/checks/facts.ts';

test('a check that does not end in time is wrong, and says so', async () => {
  const finding = await said(within(20, 'start it', () => new Promise(() => undefined)));
  expect(finding).toEqual({ ok: false, detail: 'no answer within 0.02 s', do: 'start it' });
});

test('a check that fails is wrong, with the reason and its cause', async () => {
  const cause = new Error('connection refused');
  const failing = () =>
    Promise.reject(new FuelError('STORE_UNAVAILABLE', 'the store cannot be reached', { cause }));
  const detail = 'the store cannot be reached (connection refused)';
  expect(await said(within(1_000, 'start it', failing))).toEqual({ ok: false, detail, do: 'start it' });
});

test('the finding of a check is its result', async () => {
  const finding = await said(within(1_000, 'nothing', () => right('fine')));
  expect(finding).toEqual({ ok: true, detail: 'fine', do: null });
});
