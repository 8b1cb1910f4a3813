import { expect, test } from 'vitest';
import { ServerStore, type StoreServer, stateOfVersion } from '../../../src/engines/tables/server-store.ts';

/** A server whose tables have the version of the plan once they are made. */
function storeOn(server: Partial<StoreServer> = {}) {
  const calls = { made: 0, used: 0 };
  const store = new ServerStore(
    { name: 'things', version: 2 },
    {
      title: 'A server',
      versionOf: async () => (calls.made === 0 ? undefined : 2),
      make: async () => {
        calls.made++;
      },
      ...server,
    },
  );
  const use = () =>
    store.use(1_000, async () => {
      calls.used++;
    });
  return { calls, store, use };
}

test('what a store needs is made by the first use only', async () => {
  const { calls, use } = storeOn();
  await Promise.all([use(), use()]);
  await use();
  expect(calls).toEqual({ made: 1, used: 3 });
});

test('tables that another process has dropped are made again, and the work is repeated', async () => {
  const dropped = new Error('dropped');
  const { calls, store, use } = storeOn({
    isOfMissing: (error) => error === dropped,
    versionOf: async () => undefined,
  });
  const failing = (times: number) => async () => {
    times--;
    if (times >= 0) throw dropped;
    return 'done';
  };
  await use();
  expect(await store.use(1_000, failing(1))).toBe('done');
  expect(calls.made).toBe(2);
  await expect(store.use(1_000, failing(2))).rejects.toBe(dropped);
});

test('tables that a newer process has made, even at the same time, are refused with what to do', async () => {
  for (const versions of [[3], [undefined, 3], [1, 3]]) {
    const { store } = storeOn({ versionOf: async () => versions.shift() });
    await expect(store.use(1_000, async () => undefined)).rejects.toMatchObject({
      code: 'STORE_NEWER',
      message: expect.stringContaining('Run the newer version'),
    });
  }
});

test('work that does not answer in time rejects, and that of a closed store is not begun', async () => {
  const { calls, store, use } = storeOn();
  await use();
  const silent = store.use(20, () => new Promise<void>(() => undefined));
  await expect(silent).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await expect(store.use(1_000, () => Promise.reject(new RangeError('own')))).rejects.toThrow('own');
  store.close();
  await expect(use()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  expect(calls.used).toBe(1);
});

test.each([
  [undefined, 'missing'],
  [1, 'of another version'],
  [2, 'current'],
  [3, 'current'],
] as const)('tables of version %s are %s for a program of version 2', (found, state) => {
  expect(stateOfVersion(found, { name: 'things', version: 2 })).toBe(state);
});
