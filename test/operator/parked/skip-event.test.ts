import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readKeys } from '../../../src/accounts/rows/read-rows.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { parkedAt, skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { keyIssued, onKey, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { KeptRows } from '../../support/accounts/kept-rows.ts';
import {
  onFile,
  openPushStores,
  openPushStoresWith,
  type PushStores,
} from '../../support/deliveries/push-stores.ts';
import { flipData } from '../../support/event-store/flip-bytes.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { until } from '../../support/waiting.ts';

const INVALID = { type: 'AccountRenamedTwice', data: { account_id: 7 } };

async function closed(stores: PushStores<EventStore> = openPushStores()) {
  await stores.account(opened(), keyIssued());
  await stores.append('account-7', INVALID);
  await stores.account(onKey('KeySwitchedOff'));
  const [, , event] = await stores.store.readStream('account-7');
  const position = event?.position ?? 0;
  const how = { author: stores.author, reason: 'written by hand', clock: stores.clock };
  const kept = new KeptRows(stores.store, stores.clock);
  /** The rows of accounts with every event. */
  const rows = async () => {
    await kept.follow();
    return kept.tables;
  };
  const none = { parked: async () => [] };
  const skip = async (at = position) => {
    const parts = { store: stores.store, view: none, subscriptions: none, accounts: await rows() };
    return skipEvent(stores.store, at, { ...how, parked: await parkedAt(at, parts) });
  };
  return { ...stores, position, rows, skip };
}

describe('an account event that can never be applied', () => {
  test('closes its account until it is skipped, with all that came after it', async () => {
    const { rows, skip } = await closed();
    expect((await readKeys(await rows(), [PREFIX])).get(PREFIX)?.unreadable).not.toBeNull();
    expect(await skip()).toBe(true);
    expect((await readKeys(await rows(), [PREFIX])).get(PREFIX)).toMatchObject({
      unreadable: null,
      key: { active: false },
    });
  });

  test('is skipped once, on record, and no other position is', async () => {
    const { store, skip, position } = await closed();
    await expect(skip(position - 1)).rejects.toMatchObject({ code: 'REFUSED' });
    expect([await skip(), await skip()]).toEqual([true, false]);
    await expect(skip(position - 1)).rejects.toMatchObject({ code: 'REFUSED' });
    const recorded = await store.readStream('operations');
    expect(recorded.map(({ type, data }) => [type, data])).toEqual([
      ['ParkedSkipped', { position, stream: 'account-7', revision: 2, reason: 'written by hand' }],
    ]);
  });

  test('holds up the deliveries of its account no more, once it is skipped', async () => {
    const { store, skip } = await closed();
    const history = new AccountHistory({ store });
    const place = { accountId: 7, position: Number.MAX_SAFE_INTEGER };
    expect(await history.asOf(place, () => 'judged')).toEqual({ unreadable: expect.any(String) });
    await skip();
    await until(async () => (await history.asOf(place, () => 'judged')) === 'judged');
  });

  test('is not skipped where its bytes are damaged: it may have switched something off', async () => {
    const { store, clock, folder } = await closed(openPushStoresWith(onFile));
    await store.close();
    flipData(join(folder, 'events.db'), 'AccountRenamedTwice', 4);
    const damaged = onFile(clock, folder);
    onTestFinished(() => damaged.close());
    const [, , event] = await damaged.readStream('account-7');
    const how = { author: { actor: 'test', command: 'test' }, reason: 'x', clock };
    await expect(skipEvent(damaged, event?.position ?? 0, { ...how, parked: event })).rejects.toThrow(
      'restore events.db from a backup',
    );
  });
});

test('fuel projection parked skip needs a reason, and opens the account for commands again', async () => {
  const { fuel, account, append, withEngines } = commandLine();
  await account(opened());
  await append('account-7', [INVALID]);
  const [, event] = await withEngines((engines) => engines.store().readStream('account-7'));
  const skip = ['projection', 'parked', 'skip', String(event?.position)];
  expect((await fuel('account', 'integration', '7', 'on')).code).toBe(1);
  expect((await fuel(...skip)).code).toBe(2);
  expect(await fuel(...skip, '--reason', 'by hand', '--json')).toMatchObject({
    code: 0,
    json: { skipped: 1 },
  });
  expect(await fuel(...skip, '--reason', 'by hand', '--json')).toMatchObject({
    code: 0,
    json: { skipped: 0 },
  });
  expect((await fuel('account', 'integration', '7', 'on')).code).toBe(0);
});
