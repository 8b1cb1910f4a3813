import { describe, expect, test } from 'vitest';
import { until } from '../../support/waiting.ts';
import { contacts, machine } from './live-machine.ts';

describe('saving the directory', () => {
  test('of two processes at once is done by one; the other one retries after a minute', async () => {
    const m = machine();
    await m.openNine();
    let tries = 0;
    const { said } = await m.startAndCatchUp({
      save: async (...all) => (tries++ === 0 ? false : m.stored.save(...all)),
    });
    await m.recordMany();
    await until(() => tries === 1);
    m.clock.advance(60_000);
    await until(async () => (await m.savedAt()) !== undefined);
    expect(said('could not be saved')).toBe(0);
  });

  test('of a few events comes a minute after the first of them', async () => {
    const m = machine();
    const { live } = await m.startAndCatchUp();
    await m.openNine();
    await until(() => live.directory.account(9) !== undefined);
    m.clock.advance(59_000);
    await m.append('account-9', contacts(1));
    await until(() => live.directory.account(9)?.revision === 1);
    expect(await m.savedAt()).toBeUndefined();
    m.clock.advance(1_000);
    await until(async () => (await m.savedAt()) !== undefined);
  });

  test('that took two seconds is not done again for twenty, however much has changed', async () => {
    const m = machine();
    const { live, said } = await m.startAndCatchUp({
      async save(...all) {
        m.clock.advance(2_000);
        return m.stored.save(...all);
      },
    });
    await m.openNine();
    await m.recordMany();
    await until(() => said('directory saved') === 1);
    m.clock.advance(19_000);
    await m.recordMany();
    await until(() => live.directory.account(9)?.revision === 2_000);
    expect(said('directory saved')).toBe(1);
    m.clock.advance(1_000);
    await m.append('account-9', contacts(0));
    await until(() => said('directory saved') === 2);
  });

  test('that fails is logged and disturbs nothing else; it is retried a minute later', async () => {
    const m = machine();
    await m.openNine();
    await m.recordMany();
    let tries = 0;
    const { live, said } = await m.startAndCatchUp({
      save: (...all) => (tries++ === 0 ? Promise.reject(new Error('no space')) : m.stored.save(...all)),
    });
    await until(() => said('could not be saved') > 0);
    await m.append('account-9', contacts(0));
    await until(() => live.directory.account(9)?.revision === 1_001);
    expect(tries).toBe(1);
    m.clock.advance(60_000);
    await until(async () => (await m.savedAt()) !== undefined);
  });

  test('that ends with the process is no failure', async () => {
    const m = machine();
    const begun = Promise.withResolvers<void>();
    const { said, stop } = await m.startAndCatchUp({
      save: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          begun.resolve();
        }),
    });
    await m.openNine();
    await m.recordMany();
    await begun.promise;
    await stop();
    expect(said('could not be saved')).toBe(0);
  });

  test('counts what is applied while it goes on for the next one', async () => {
    const m = machine();
    let tries = 0;
    const { live } = await m.startAndCatchUp({
      async save(...all) {
        if (tries++ === 0) await m.recordMany();
        return m.stored.save(...all);
      },
    });
    await m.openNine();
    await m.recordMany();
    await until(() => live.directory.account(9)?.revision === 2_000);
    await until(() => tries === 2);
  });
});
