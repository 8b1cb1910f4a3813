import { expect, onTestFinished, test } from 'vitest';
import { applyToDirectory } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountState } from '../../../src/accounts/directory/fold/directory-entry.ts';
import type { RowsHead } from '../../../src/accounts/directory/rows/rows.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { AccountKey } from '../../../src/domain/account.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { verifyDirectory } from '../../../src/operator/verify/verify-directory.ts';
import { keyIssued, onKey, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { openStored, saveAll, saveHead } from '../../support/accounts/stored-directory.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';

const AUTHOR = { actor: 'test', command: 'test' };

interface Changes {
  readonly head?: Partial<RowsHead>;
  /** Events that are not in a stream. */
  readonly invented?: readonly RecordedEvent[];
  readonly states?: (states: AccountState[]) => AccountState[];
}

/** Accounts 7 and 9, with rows made from the events that `known` picks and changed afterwards. */
async function machine(known?: (event: RecordedEvent) => boolean, changes: Changes = {}) {
  const store = openMemoryEventStore(new MemoryLog(), systemClock);
  const { rows, stored } = openStored();
  onTestFinished(async () => {
    for (const open of [stored, store]) await open.close();
  });
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
    for (const stream of Object.keys(streams))
      for (const event of await store.readStream(stream))
        if (known(event)) applyToDirectory(directory, event);
    for (const event of changes.invented ?? []) applyToDirectory(directory, event);
    const states = [...directory.states()];
    const directoryAs = { states: () => changes.states?.(states) ?? states };
    await saveAll({ store, clock: systemClock, stored }, directoryAs);
    if (changes.head !== undefined) await saveHead(rows, changes.head);
  }
  return {
    store,
    verify: (accountId?: number) => verifyDirectory({ store, stored, clock: systemClock }, accountId),
  };
}

test('without stored rows the directory is what the streams say', async () => {
  const { verify } = await machine();
  expect(await verify()).toEqual({ checked: 2, differences: [] });
});

test('with rows of every event the directory is what the streams say, too', async () => {
  const { verify } = await machine(() => true);
  expect(await verify()).toEqual({ checked: 2, differences: [] });
});

test('rows that lack an event or an account differ from the streams, and name the account', async () => {
  const { verify } = await machine(({ type, stream }) => type !== 'KeySwitchedOff' && stream !== 'account-9');
  expect(await verify()).toEqual({
    checked: 2,
    differences: ['account 7 differs from its stream', 'account 9 differs from its stream'],
  });
  expect(await verify(9)).toEqual({ checked: 1, differences: ['account 9 differs from its stream'] });
});

test('an account that has no stream is a difference', async () => {
  const [data, recordedAtMs] = [{ account_id: 11, name: 'Invented' }, 0];
  const invented = { position: 2, stream: 'account-11', revision: 0, id: 'x', type: 'AccountOpened', data };
  const { verify } = await machine(() => true, { invented: [{ ...invented, metadata: {}, recordedAtMs }] });
  expect(await verify()).toEqual({ checked: 2, differences: ['account 11 has no stream'] });
  expect(await verify(7)).toEqual({ checked: 1, differences: [] });
});

test('the prefixes by which keys are found are compared too', async () => {
  const { verify } = await machine(() => true, {
    states: (states) =>
      states.map(({ id, position, revision, packed }) => ({
        ...{ id, position, revision, unreadable: null, lastKeys: undefined, keyEvents: undefined },
        packed: packed && { ...packed, prefixes: ['other'] },
      })),
  });
  expect((await verify(7)).differences).toEqual(['account 7 differs from its stream']);
});

test('the keys that an account had before it became unreadable are compared too', async () => {
  const { verify } = await machine(() => true, {
    states: (states) =>
      states.map(({ id, position, revision, packed }) => {
        const lastKeys = new Map([[PREFIX, { prefix: PREFIX } as AccountKey]]);
        return { id, position, revision, packed, lastKeys, unreadable: null, keyEvents: undefined };
      }),
  });
  expect((await verify(9)).differences).toEqual(['account 9 differs from its stream']);
});

test('a changed row is a difference, but one of another version of the program is not', async () => {
  const changed = await machine(() => true, { head: { storeId: 'another' } });
  expect((await changed.verify()).differences).toEqual([
    expect.stringMatching(/^the stored directory cannot be used: .*another/),
  ]);
  const { verify } = await machine(() => true, { head: { version: 4 } });
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
