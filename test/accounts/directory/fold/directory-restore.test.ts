import { describe, expect, test } from 'vitest';
import { Directory, type DirectoryEvent } from '../../../../src/accounts/directory/fold/directory.ts';
import type { AccountState } from '../../../../src/accounts/directory/fold/directory-entry.ts';
import type { AccountEvent } from '../../../../src/domain/account-events.ts';
import { groupAdded, keyIssued, onKey, opened, PREFIX } from '../../../support/accounts/account-samples.ts';
import { contentOf } from '../../../support/accounts/directory-content.ts';

const other = 'klmnopqrst';

/** The events of account 7, each at position 10 × revision + 1. `undefined` is an unreadable event. */
const inStream = (...events: readonly (AccountEvent | undefined)[]): DirectoryEvent[] =>
  events.map((event, revision) => ({
    position: revision * 10 + 1,
    stream: 'account-7',
    revision,
    decoded: event === undefined ? { ok: false, reason: 'not read' } : { ok: true, event, atMs: 1_000 },
  }));

function directoryOf(...events: readonly (AccountEvent | undefined)[]): Directory {
  const directory = new Directory();
  for (const event of inStream(...events)) directory.apply(event);
  return directory;
}

/** Returns copies of the states, as if read from a store, since the other directory keeps its own. */
const statesOf = (directory: Directory): AccountState[] =>
  [...directory.states()].map(({ id, position, revision, unreadable, packed, lastKeys, keyEvents }) =>
    structuredClone({ id, position, revision, unreadable, packed, lastKeys, keyEvents }),
  );

function restored(from: Directory, position = from.position): Directory {
  const directory = new Directory();
  directory.restore(statesOf(from), position);
  return directory;
}

describe('a directory that takes over another’s states', () => {
  test('knows the same accounts and keys, as far as the other one was', () => {
    const from = directoryOf(opened(), keyIssued(), groupAdded());
    const directory = restored(from);
    expect(contentOf(directory)).toEqual(contentOf(from));
    expect(directory.counts).toEqual(from.counts);
    expect(directory.account(7)).toMatchObject({ id: 7, position: 21, revision: 2, unreadable: null });
    expect(directory.key(PREFIX)).toMatchObject({ entry: { id: 7 }, key: { prefix: PREFIX } });
    expect(directory.position).toBe(21);
  });

  test('continues where the other one was: later events change it, earlier ones do not', () => {
    const directory = restored(directoryOf(opened(), keyIssued()));
    const events = inStream(opened('Other'), keyIssued({ prefix: other }), onKey('KeySwitchedOff'));
    for (const event of events) directory.apply(event);
    expect(directory.account(7)?.account?.name).toBe('Harbour Freight');
    expect(directory.key(PREFIX)?.key.active).toBe(false);
    expect(directory.key(other)).toBeUndefined();
  });

  test('finds the keys of an unreadable account too, so that they are not called unknown', () => {
    const directory = restored(directoryOf(opened(), keyIssued(), undefined));
    expect(directory.account(7)).toMatchObject({ account: undefined, unreadable: { position: 21 } });
    expect(directory.key(PREFIX)).toMatchObject({ entry: { account: undefined }, key: { prefix: PREFIX } });
    expect(restored(directoryOf(undefined)).account(7)?.unreadable).not.toBeNull();
  });

  test('does not move back', () => {
    const directory = new Directory();
    directory.advance(500);
    directory.restore(statesOf(directoryOf(opened())), 1);
    expect(directory.position).toBe(500);
  });

  test('takes states that belong to no key, and those whose keys were not kept', () => {
    const directory = new Directory();
    const state = {
      id: 7,
      packed: undefined,
      position: 1,
      revision: 0,
      unreadable: null,
      lastKeys: undefined,
      keyEvents: undefined,
    };
    directory.restore([state], 1);
    expect([directory.account(7)?.revision, directory.key(PREFIX)]).toEqual([0, undefined]);
  });
});

describe('an unreadable account that is folded again', () => {
  test('is open again where its events can be read now', () => {
    const directory = directoryOf(opened(), keyIssued(), undefined);
    directory.refold(7, inStream(opened(), keyIssued({ prefix: other }), onKeyOf(other)));
    expect(directory.account(7)).toMatchObject({ unreadable: null, revision: 2, position: 21 });
    expect(directory.key(other)?.key.active).toBe(false);
    expect(directory.key(PREFIX)).toBeUndefined();
  });

  test('stays unreadable with its new fault where they can not', () => {
    const directory = directoryOf(undefined);
    directory.refold(7, inStream(opened(), undefined));
    expect(directory.account(7)?.unreadable).toEqual({ position: 11, reason: 'not read' });
  });

  test('releases its prefixes for the account that rightfully has them', () => {
    const directory = directoryOf(opened(), keyIssued(), undefined);
    directory.refold(7, inStream(opened()));
    const theirs = [opened('Eight', 8), keyIssued({ account_id: 8 })];
    for (const [index, event] of inStream(...theirs).entries()) {
      directory.apply({ ...event, stream: 'account-8', position: 100 + index });
    }
    expect(directory.key(PREFIX)?.entry).toMatchObject({ id: 8, unreadable: null });
  });

  test('is ignored where it can be read or is not known', () => {
    const directory = directoryOf(opened(), keyIssued());
    directory.refold(7, inStream(opened('Other')));
    directory.refold(9, inStream(opened()));
    expect(directory.account(7)).toMatchObject({ account: { name: 'Harbour Freight' }, revision: 1 });
    expect(directory.account(9)).toBeUndefined();
  });
});

function onKeyOf(prefix: string): AccountEvent {
  return { type: 'KeySwitchedOff', data: { account_id: 7, prefix } };
}
