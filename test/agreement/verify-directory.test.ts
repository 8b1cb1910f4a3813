import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../projections/directory.ts';
import type { AccountState } from '../../projections/directory-entry.ts';
import { applyToDirectory } from '../../src/accounts/directory/apply-to-directory.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  snapshotParts,
} from '../../src/accounts/directory/snapshots/snapshot.ts';
import { openSqliteDirectorySnapshots } from '../../src/accounts/directory/snapshots/sqlite.ts';
import { skipEvent } from '../../src/accounts/skip-event.ts';
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

interface Changes {
  readonly version?: number;
  readonly storeId?: string;
  /** Events that are in no stream. */
  readonly invented?: readonly RecordedEvent[];
  readonly states?: (states: AccountState[]) => AccountState[];
}

/** Accounts 7 and 9, and a snapshot that was made of those events that `known` picks, and changed since. */
async function machine(known?: (event: RecordedEvent) => boolean, changes: Changes = {}) {
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
    for (const event of changes.invented ?? []) applyToDirectory(directory, event);
    const states = [...directory.states()];
    const { position, stream, revision, id: eventId } = first;
    const anchor = { position, stream, revision, eventId };
    await snapshots.save(
      { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position: await store.head(), ...changes },
      snapshotParts({ anchor, events: [], accounts: changes.states?.(states) ?? states }),
    );
  }
  return {
    store,
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

test('an account that is in no stream is a difference', async () => {
  const [data, recordedAtMs] = [{ account_id: 11, name: 'Invented' }, 0];
  const invented = { position: 2, stream: 'account-11', revision: 0, id: 'x', type: 'AccountOpened', data };
  const { verify } = await machine(() => true, { invented: [{ ...invented, metadata: {}, recordedAtMs }] });
  expect(await verify()).toEqual({ checked: 2, differences: ['account 11 is in no stream'] });
  expect(await verify(7)).toEqual({ checked: 1, differences: [] });
});

test('the prefixes by which keys are found are compared too, whatever the account says', async () => {
  const { verify } = await machine(() => true, {
    states: (states) =>
      states.map(({ packed, ...state }) => ({
        ...state,
        packed: packed && { ...packed, prefixes: ['other'] },
      })),
  });
  expect((await verify(7)).differences).toEqual(['account 7 is not as its stream says']);
});

test('a snapshot that was changed is a difference; one of another version of the program is none', async () => {
  const changed = await machine(() => true, { storeId: 'another' });
  expect((await changed.verify()).differences).toEqual([
    expect.stringMatching(/^the stored snapshot can not be used: .*another/),
  ]);
  const { verify } = await machine(() => true, { version: DIRECTORY_SNAPSHOT_VERSION - 1 });
  expect((await verify()).differences).toEqual([]);
});

test('an event that was skipped is left out on both sides', async () => {
  const { store, verify } = await machine();
  const invalid = newEvent({ type: 'AccountRenamedTwice', data: {} } as never, AUTHOR, 0);
  await store.append([{ stream: 'account-9', expected: 'any', events: [invalid] }]);
  const position = await store.head();
  await skipEvent(store, position, { author: AUTHOR, reason: 'by hand', clock: systemClock });
  expect(await verify()).toEqual({ checked: 2, differences: [] });
});
