import { expect, test } from 'vitest';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { keyIssued, onKey, opened } from '../../support/accounts/account-samples.ts';
import { saveAll } from '../../support/accounts/stored-directory.ts';
import { replacing } from '../../support/interposed.ts';
import { until } from '../../support/waiting.ts';
import { machine } from './live-machine.ts';

const INVALID = { type: 'AccountRenamedTwice', data: { account_id: 7 } };

function skipping() {
  const m = machine();
  const { store, clock, author } = m;
  const skip = async (position: number) => {
    const parked = (await store.readStream('account-7')).find((event) => event.position === position);
    return skipEvent(store, position, { author, reason: 'by hand', clock, parked });
  };
  const positionOf = async (revision: number): Promise<number> =>
    (await store.readStream('account-7'))[revision]?.position ?? 0;
  return { ...m, skip, positionOf };
}

test('an account that two events close is open once both are skipped, also for who began in between', async () => {
  const { store, clock, account, append, stored, skip, positionOf, start } = skipping();
  await storeIdentity(store, clock);
  await account(opened(), keyIssued());
  await append('account-7', INVALID, INVALID);
  await account(onKey('KeySwitchedOff'));
  const before = start();
  await before.live.whenCaughtUp;
  await skip(await positionOf(2));
  await append('account-9', opened('Nine', 9));
  const directory = await loadDirectory(store);
  expect(directory.account(7)?.unreadable).toMatchObject({ position: await positionOf(3) });
  await saveAll({ store, clock, stored }, directory);
  const between = start();
  await between.live.whenCaughtUp;
  expect(between.isOpen()).toBe(false);
  await skip(await positionOf(3));
  for (const each of [before, between]) {
    await until(() => each.isOpen());
    expect(each.told.map(({ event }) => event.type)).toContain('EventSkipped');
    const told = each.told.length;
    const data = { position: 1, stream: 'account-7', revision: 0, reason: 'in vain' };
    await append('operations', { type: 'ParkedSkipped', data });
    const head = await store.head();
    await until(() => (each.moved.at(-1)?.position ?? 0) >= head);
    expect([each.isOpen(), each.told.length]).toEqual([true, told]); // an open account stays as it is
  }
});

test('who waits for a skipped event waits until its account is open', async () => {
  const { store, account, append, skip, positionOf, start } = skipping();
  await account(opened());
  await append('account-7', INVALID);
  let isAsked = false;
  let gate: PromiseWithResolvers<void> | undefined;
  const { live, moved, isOpen } = start({
    on: replacing(store, {
      async readStream(stream, options) {
        if (stream === 'account-7') {
          isAsked = true;
          await gate?.promise;
        }
        return store.readStream(stream, options);
      },
    }),
  });
  await live.whenCaughtUp;
  gate = Promise.withResolvers<void>();
  await skip(await positionOf(1));
  const head = await store.head();
  await until(() => isAsked);
  expect([isOpen(), (moved.at(-1)?.position ?? 0) < head]).toEqual([false, true]);
  gate.resolve();
  await until(() => (moved.at(-1)?.position ?? 0) >= head);
  expect(moved.find(({ position }) => position >= head)?.isOpen).toBe(true);
});

test('what came after the operation that skips an event is told once, and what is stored is as old as the log shows', async () => {
  const { store, account, append, skip, positionOf, start } = skipping();
  await account(opened(), keyIssued());
  await append('account-7', INVALID);
  await skip(await positionOf(2));
  await account(onKey('KeySwitchedOff'));
  const [created, issued, invalid, off] = await store.readStream('account-7');
  const operation = (await store.readStream('operations')).at(-1);
  const batches = [[created, issued, invalid], [operation], [off]] as RecordedEvent[][];
  const { live, told } = start({
    on: replacing(store, {
      async *subscribe() {
        for (const events of batches) {
          const position = (events.at(-1)?.position ?? 0) + 100;
          yield { events, position, checkpoint: position - 100, caughtUp: events.includes(off as never) };
        }
      },
      readStream: (stream, options) =>
        stream === 'operations' ? Promise.resolve([]) : store.readStream(stream, options),
    }),
  });
  await live.whenCaughtUp;
  expect(told.filter(({ event }) => event.type === 'KeySwitchedOff')).toHaveLength(1);
  expect(live.shared?.position).toBe(off?.position);
});
