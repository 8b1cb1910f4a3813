import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../projections/directory.ts';
import { applyToDirectory } from '../../src/accounts/directory/apply-to-directory.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  snapshotParts,
} from '../../src/accounts/directory/snapshots/snapshot.ts';
import { openSqliteDirectorySnapshots } from '../../src/accounts/directory/snapshots/sqlite.ts';
import { verifyDirectory } from '../../src/agreement/verify-directory.ts';
import { systemClock } from '../../src/clock.ts';
import type { RecordedEvent } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { openSqliteEventStore } from '../../src/event-store/sqlite/event-store.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { keyIssued, onKey, opened } from '../support/accounts/account-samples.ts';
import { sealKeys } from '../support/accounts/seal-keys.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** Accounts 7 and 9, and a snapshot that was made of those events that `known` picks. */
async function machine(known?: (event: RecordedEvent) => boolean) {
  const folder = temporaryFolder();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock: systemClock });
  const snapshots = openSqliteDirectorySnapshots({ path: join(folder, 'directory.db'), keys: sealKeys(1) });
  onTestFinished(async () => {
    for (const open of [snapshots, store]) await open.close();
  });
  const storeId = await storeIdentity(store, systemClock);
  const streams = {
    'account-7': [opened(), keyIssued(), onKey('KeySwitchedOff')],
    'account-9': [opened('Other', 9)],
  };
  for (const [stream, events] of Object.entries(streams)) {
    const recorded = events.map((event) => newEvent(event, AUTHOR, 0));
    await store.append([{ stream, expected: 'none', events: recorded }]);
  }
  if (known !== undefined) {
    const directory = new Directory();
    const [first] = await store.readStream('account-7');
    if (first === undefined) throw new Error('no event');
    for (const stream of Object.keys(streams))
      for (const event of await store.readStream(stream))
        if (known(event)) applyToDirectory(directory, event);
    const { position, stream, revision, id: eventId } = first;
    const anchor = { position, stream, revision, eventId };
    await snapshots.save(
      { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position: await store.head() },
      snapshotParts({ anchor, events: [], accounts: directory.states() }),
    );
  }
  return {
    verify: (accountId?: number) => verifyDirectory({ store, snapshots, clock: systemClock }, accountId),
  };
}

test('without a snapshot the directory is what the streams say', async () => {
  const { verify } = await machine();
  expect(await verify()).toEqual({ checked: 2, differences: [] });
});

test('with a snapshot of every event it is, too', async () => {
  const { verify } = await machine(() => true);
  expect(await verify()).toEqual({ checked: 2, differences: [] });
});

test('a snapshot that lacks an event, or an account, differs from the streams, by account', async () => {
  const { verify } = await machine(({ type, stream }) => type !== 'KeySwitchedOff' && stream !== 'account-9');
  expect(await verify()).toEqual({
    checked: 2,
    differences: ['account 7 is not as its stream says', 'account 9 is not as its stream says'],
  });
  expect(await verify(9)).toEqual({ checked: 1, differences: ['account 9 is not as its stream says'] });
});
