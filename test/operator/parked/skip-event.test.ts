import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { keyIssued, onKey, opened, PREFIX } from '../../support/accounts/account-samples.ts';
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
  return { ...stores, position, skip: (at = position) => skipEvent(stores.store, at, how) };
}

describe('an account event that can never be applied', () => {
  test('closes its account until it is skipped, in each process that runs, with all that came after it', async () => {
    const { store, clock, skip } = await closed();
    const directory = new Directory();
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const seen: string[] = [];
    const live = new LiveDirectory({
      ...{ store, directory, clock, log: silentLog, signal: end.signal },
      onEvent: ({ type }) => void seen.push(type),
    });
    void live.run();
    await live.whenCaughtUp;
    expect(directory.account(7)?.unreadable).not.toBeNull();
    expect(await skip()).toBe(true);
    await until(() => directory.account(7)?.unreadable === null);
    expect(directory.key(PREFIX)?.key.active).toBe(false);
    expect(seen).toContain('KeySwitchedOff');
    expect((await loadDirectory(store)).account(7)).toMatchObject({ unreadable: null, revision: 3 });
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
    for (const parked of [undefined, event]) {
      await expect(skipEvent(damaged, event?.position ?? 0, { ...how, parked })).rejects.toThrow(
        'restore events.db from a backup',
      );
    }
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
