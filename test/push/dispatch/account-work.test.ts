import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { AccountWork } from '../../../src/push/dispatch/account-work.ts';
import { opened, profileSet } from '../../support/accounts/account-samples.ts';
import { claimFrom, claimOptions, held, newDelivery } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { queueInFile } from '../../support/deliveries/open-queue.ts';
import { unavailable } from '../../support/deliveries/push-machine.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MINUTE_MS = 60_000;
const ON: AccountEvent = { type: 'IntegrationEnabled', data: { account_id: 7 } };
const OFF: AccountEvent = { type: 'IntegrationDisabled', data: { account_id: 7 } };
const OPEN = profileSet('2026-01-01T00:00:00.000Z', null);

/** Account 7 with one delivery held; `resumed` are the times at which its deliveries were made due. */
async function start(...events: readonly AccountEvent[]) {
  const clock = new FakeClock();
  const queue = queueInFile({ path: `${temporaryFolder()}/deliveries.db`, clock });
  onTestFinished(() => queue.close());
  const directory = new Directory();
  let revision = 0;
  const apply = (...more: readonly AccountEvent[]): void => {
    for (const event of more) {
      const decoded = { ok: true, event, atMs: clock.now() } as const;
      directory.apply({ position: revision + 1, stream: 'account-7', revision: revision++, decoded });
    }
  };
  apply(opened(), ...events);
  const hold = async (n: number): Promise<void> => {
    const nowMs = clock.now();
    await queue.enqueue([newDelivery(n)]);
    await queue.report((await claimFrom(queue, claimOptions(nowMs))).map(held));
  };
  await hold(1);
  const resumed: number[] = [];
  const store = { failing: '', onResume: async () => undefined as unknown };
  const accounts = new AccountWork({
    directory,
    queue: {
      heldAccounts: () => (store.failing === 'look' ? Promise.reject(unavailable()) : queue.heldAccounts()),
      async change(change, nowMs) {
        if (store.failing === 'change') throw unavailable();
        resumed.push(nowMs);
        const count = await queue.change(change, nowMs);
        await store.onResume();
        return count;
      },
    },
  });
  const states = async () => (await listed(queue)).map(({ state }) => state);
  return { clock, queue, apply, hold, accounts, resumed, store, states };
}

test('deliveries are looked for again at once where the clock is set back', async () => {
  const { clock, accounts, states } = await start(
    ON,
    profileSet('2026-01-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'),
  );
  clock.advance(100 * 1_440 * MINUTE_MS); // the profile has ended
  await accounts.run(clock.now());
  expect(await states()).toEqual(['held']);
  clock.advance(-100 * 1_440 * MINUTE_MS);
  await accounts.run(clock.now());
  expect(await states()).toEqual(['pending']);
});

test('deliveries that another process held, and then died, are found at the start and once a minute', async () => {
  const { clock, accounts, apply, states } = await start(OFF, OPEN);
  const startMs = clock.now();
  expect(accounts.nextAtMs()).toBeLessThanOrEqual(startMs);
  await accounts.run(startMs);
  expect(accounts.nextAtMs()).toBe(startMs + MINUTE_MS);
  apply(ON);
  await accounts.run(startMs + MINUTE_MS - 1);
  expect(await states()).toEqual(['held']);
  await accounts.run(startMs + MINUTE_MS);
  expect(await states()).toEqual(['pending']);
  expect(accounts.nextAtMs()).toBe(startMs + 2 * MINUTE_MS);
});

test('deliveries of an account are made due when it has access, and not before', async () => {
  const { clock, accounts, apply, states, resumed } = await start(OFF, OPEN);
  const nowMs = clock.now();
  await accounts.run(nowMs);
  accounts.checkAccess(7);
  await accounts.run(nowMs + 1);
  expect(resumed).toEqual([]);
  apply(ON);
  accounts.checkAccess(7);
  await accounts.run(nowMs + 2);
  expect(await states()).toEqual(['pending']);
  await accounts.run(nowMs + 3);
  expect(resumed).toEqual([nowMs + 2]);
});

test('deliveries are made due once, in the millisecond in which a charging profile starts', async () => {
  const { clock, accounts, states, resumed } = await start(ON);
  const nowMs = clock.now();
  const beginsAtMs = nowMs + 10_000;
  const second = await start(ON, profileSet(new Date(beginsAtMs).toISOString(), null));
  await accounts.run(nowMs);
  expect(accounts.nextAtMs()).toBe(nowMs + MINUTE_MS);
  expect([await states(), resumed]).toEqual([['held'], []]);
  await second.accounts.run(nowMs);
  expect(second.accounts.nextAtMs()).toBe(beginsAtMs);
  await second.accounts.run(beginsAtMs - 1);
  expect(await second.states()).toEqual(['held']);
  await second.accounts.run(beginsAtMs);
  expect(await second.states()).toEqual(['pending']);
  expect(second.accounts.nextAtMs()).toBe(nowMs + MINUTE_MS);
  await second.accounts.run(beginsAtMs + 1);
  expect(second.resumed).toEqual([beginsAtMs]);
});

test('an account whose profile was moved to a later start is checked by its new profile', async () => {
  const { clock, accounts, apply } = await start(ON);
  const nowMs = clock.now();
  const begins = (afterMs: number) => profileSet(new Date(nowMs + afterMs).toISOString(), null);
  apply(begins(10_000));
  await accounts.run(nowMs);
  expect(accounts.nextAtMs()).toBe(nowMs + 10_000);
  apply(begins(20_000));
  accounts.checkAccess(7);
  await accounts.run(nowMs + 1);
  expect(accounts.nextAtMs()).toBe(nowMs + 20_000);
  apply(OFF);
  accounts.checkAccess(7);
  await accounts.run(nowMs + 2);
  expect(accounts.nextAtMs()).toBe(nowMs + MINUTE_MS);
});

test('what could not be made due is tried again with the next call', async () => {
  const { clock, accounts, store, states } = await start(ON, OPEN);
  store.failing = 'change';
  await expect(accounts.run(clock.now())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  store.failing = '';
  await accounts.run(clock.now() + 1);
  expect(await states()).toEqual(['pending']);
});

test('what is held while the others are made due is made due by the next call', async () => {
  const { clock, accounts, store, hold, states } = await start(ON, OPEN);
  store.onResume = async () => {
    store.onResume = async () => undefined;
    await hold(2);
    accounts.checkAccess(7);
  };
  await accounts.run(clock.now());
  expect(await states()).toEqual(['held', 'held']);
  await accounts.run(clock.now() + 1);
  expect(await states()).toEqual(['pending', 'pending']);
});

test('a look for held deliveries that failed is repeated at once, not a minute later', async () => {
  const { clock, accounts, store, states } = await start(ON, OPEN);
  store.failing = 'look';
  await expect(accounts.run(clock.now())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  store.failing = '';
  expect(accounts.nextAtMs()).toBeLessThanOrEqual(clock.now());
  await accounts.run(clock.now());
  expect(await states()).toEqual(['pending']);
});
