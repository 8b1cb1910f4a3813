import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Directory, type DirectoryEvent } from '../../../../src/accounts/directory/fold/directory.ts';
import type { Account } from '../../../../src/domain/account.ts';
import { decide } from '../../../../src/domain/account-commands.ts';
import type { AccountEvent } from '../../../../src/domain/account-events.ts';
import { accountLogs } from '../../../support/accounts/account-logs.ts';
import { groupAdded, keyIssued, onKey, opened, PREFIX } from '../../../support/accounts/account-samples.ts';
import { commandSequences } from '../../../support/accounts/arbitrary-commands.ts';
import { contentOf } from '../../../support/accounts/directory-content.ts';
import { evolve, foldAccount } from '../../../support/accounts/evolve.ts';

const unreadableEvent = { ok: false, reason: 'unknown event type Foo' } as const;
const readable = (event: AccountEvent) => ({ ok: true, event, atMs: 1_000 }) as const;

/** An event at a revision. Its position is 10 × revision + 1. */
function at(
  revision: number,
  what: AccountEvent | typeof unreadableEvent,
  stream = 'account-7',
): DirectoryEvent {
  const decoded = 'ok' in what ? what : readable(what);
  return { position: revision * 10 + 1, stream, revision, decoded };
}

function directoryOf(...events: readonly DirectoryEvent[]): Directory {
  const directory = new Directory();
  for (const event of events) directory.apply(event);
  return directory;
}

const inStream = (...events: readonly AccountEvent[]) => events.map((event, index) => at(index, event));
const otherAccount = [
  at(0, opened('Other', 8), 'account-8'),
  at(1, { type: 'IntegrationEnabled', data: { account_id: 8 } }, 'account-8'),
];

describe('the directory', () => {
  test('knows nothing of an account without events, and no made-up prefix', () => {
    expect(directoryOf().account(7)).toBeUndefined();
    expect(directoryOf(...inStream(opened(), keyIssued())).key('zzzzzzzzzz')).toBeUndefined();
  });

  test('shows an account as its events say, with the position of the last one', () => {
    const directory = directoryOf(...inStream(opened(), groupAdded()));
    expect(directory.account(7)).toMatchObject({
      account: { name: 'Harbour Freight', groups: new Map([[3, { name: 'Depots' }]]) },
      position: 11,
      revision: 1,
      unreadable: null,
    });
  });

  test('finds a key by its prefix, switched off too', () => {
    const directory = directoryOf(...inStream(opened(), keyIssued(), onKey('KeySwitchedOff')));
    expect(directory.key(PREFIX)).toMatchObject({ entry: { id: 7 }, key: { active: false } });
  });

  test('moves its position with events and with advance, and never back', () => {
    const directory = directoryOf(...inStream(opened(), groupAdded()));
    expect(directory.position).toBe(11);
    directory.advance(500);
    directory.advance(20);
    expect(directory.position).toBe(500);
  });

  test.each(['account-x', 'account-07', 'account--1', 'account-', 'account-9007199254740993'])(
    'ignores the stream %s',
    (stream) => {
      expect(contentOf(directoryOf(at(0, opened(), stream)))).toEqual([]);
    },
  );
});

describe('an account becomes unreadable, and the others do not,', () => {
  test.each<[string, DirectoryEvent[], RegExp]>([
    ['by an event that cannot be read', [at(1, unreadableEvent)], /unknown event type Foo/],
    ['by an event that cannot follow', [at(1, onKey('KeySwitchedOff'))], /never issued/],
    ['by a gap in its revisions', [at(2, groupAdded())], /before revision 2 are missing/],
    ['by an event about another account', [at(1, opened('Harbour Freight', 8))], /about account 8/],
  ])('%s', (_, events, reason) => {
    const directory = directoryOf(at(0, opened()), ...events, ...otherAccount);
    const entry = directory.account(7);
    const fault = { position: events[0]?.position, reason: expect.stringMatching(reason) };
    expect(entry).toMatchObject({ account: undefined, unreadable: fault });
    expect(directory.account(8)?.account?.integration.enabled).toBe(true);
  });

  test('by a missing beginning', () => {
    expect(directoryOf(at(1, groupAdded())).account(7)?.unreadable).not.toBeNull();
  });

  test('by an event about a key that it never had, though another account has it, or has twice', () => {
    const switchedOff = {
      ...onKey('KeySwitchedOff'),
      data: { account_id: 8, prefix: PREFIX },
    } as AccountEvent;
    const events = [...inStream(opened(), keyIssued()), ...otherAccount, at(2, switchedOff, 'account-8')];
    expect(directoryOf(...events).account(8)?.unreadable?.reason).toMatch(/which was never issued/);
    const twice = directoryOf(...inStream(opened(), keyIssued(), keyIssued()));
    expect(twice.account(7)?.unreadable?.reason).toBe('KeyIssued repeats what is there already');
  });

  test('which is returned with the event that closed it, once', () => {
    const directory = directoryOf(at(0, opened()));
    expect(directory.apply(at(1, groupAdded()))).toBeUndefined();
    expect(directory.apply(at(2, unreadableEvent))).toBe(directory.account(7));
    expect(directory.apply(at(2, unreadableEvent))).toBeUndefined();
    expect(directory.apply(at(3, unreadableEvent))).toBeUndefined();
    expect(directory.apply(at(9, groupAdded()))).toBeUndefined(); // after a gap
  });

  test('but not by a fault of the program', () => {
    const broken = {
      get emails(): never {
        throw new RangeError('a fault of the program');
      },
    };
    const data = Object.defineProperties({ account_id: 7 }, Object.getOwnPropertyDescriptors(broken));
    const directory = directoryOf(at(0, opened()));
    const event = at(1, { type: 'AccountContactsSet', data } as unknown as AccountEvent);
    expect(() => directory.apply(event)).toThrow(RangeError);
  });

  test('when it issues a key whose prefix another account has', () => {
    const theirs = { ...keyIssued({ account_id: 8 }) };
    const events = [...inStream(opened(), keyIssued()), ...otherAccount, at(2, theirs, 'account-8')];
    const directory = directoryOf(...events);
    expect(directory.account(8)?.unreadable?.reason).toBe(`key ${PREFIX} belongs to account 7`);
    expect(directory.key(PREFIX)?.entry).toMatchObject({ id: 7, unreadable: null });
  });
});

describe('an unreadable account', () => {
  test('stays so whatever follows, and keeps its first fault', () => {
    const directory = directoryOf(
      at(0, opened()),
      at(1, unreadableEvent),
      at(2, groupAdded()),
      at(9, opened()),
    );
    const unreadable = { position: 11, reason: unreadableEvent.reason };
    expect(directory.account(7)).toMatchObject({ account: undefined, unreadable, revision: 9 });
  });

  test('still has its prefixes found, those issued afterwards too, so that they are not called unknown', () => {
    const later = keyIssued({ prefix: 'klmnopqrst' });
    const directory = directoryOf(at(0, opened()), at(1, keyIssued()), at(2, unreadableEvent), at(3, later));
    for (const prefix of [PREFIX, 'klmnopqrst']) {
      expect(directory.key(prefix)).toMatchObject({ key: { prefix }, entry: { account: undefined } });
    }
  });

  test('is not opened again by an event that would open an account', () => {
    const directory = directoryOf(
      at(0, opened()),
      at(1, unreadableEvent),
      at(2, opened()),
      at(3, groupAdded()),
    );
    expect(directory.account(7)).toMatchObject({
      account: undefined,
      unreadable: { position: 11 },
      revision: 3,
    });
  });

  test('gets no prefix from an event that issues no key', () => {
    const unknown = {
      ...onKey('KeySwitchedOff'),
      data: { account_id: 7, prefix: 'zzzzzzzzzz' },
    } as AccountEvent;
    const directory = directoryOf(at(0, opened()), at(1, unreadableEvent), at(2, unknown));
    expect(directory.key('zzzzzzzzzz')).toBeUndefined();
    const foreign = at(3, keyIssued({ account_id: 8 }));
    directory.apply(foreign);
    expect(directory.key(PREFIX)).toBeUndefined();
  });

  test('never takes a prefix from another account', () => {
    const claim = at(1, keyIssued({ account_id: 8 }));
    const rightful = [
      at(0, opened('Other', 8), 'account-8'),
      at(1, keyIssued({ account_id: 8 }), 'account-8'),
    ];
    const directory = directoryOf(at(0, opened()), claim, ...rightful);
    expect(directory.key(PREFIX)?.entry).toMatchObject({ id: 8, unreadable: null });
  });
});

describe('for any sequence of events', () => {
  const history = commandSequences.map((commands) => {
    let account: Account | undefined;
    const events: AccountEvent[] = [];
    for (const command of commands) {
      const decision = decide(command, account);
      for (const event of decision.kind === 'events' ? decision.events : []) {
        account = evolve(account, [event], 1_000);
        events.push(event);
      }
    }
    return events;
  });
  const faulty = fc
    .tuple(history, fc.array(fc.tuple(fc.nat(20), fc.constantFrom('unreadable', 'missing'))))
    .map(([events, faults]) => {
      const kinds = new Map(faults);
      return inStream(...events).flatMap((event) => {
        const kind = kinds.get(event.revision);
        if (kind === 'missing') return [];
        return kind === 'unreadable' ? [{ ...event, decoded: unreadableEvent }] : [event];
      });
    });

  test('the directory agrees with the fold of the stream', () => {
    const agrees = (events: readonly AccountEvent[]) => {
      const expected = foldAccount(events.map((event) => ({ event, atMs: 1_000 })));
      expect(directoryOf(...inStream(...events)).account(7)?.account).toEqual(expected);
    };
    fc.assert(fc.property(history, agrees));
  });

  test('applying each event twice, or all of them again, is applying them once', () => {
    const agrees = (events: readonly DirectoryEvent[]) => {
      const once = contentOf(directoryOf(...events));
      expect(contentOf(directoryOf(...events.flatMap((event) => [event, event])))).toEqual(once);
      expect(contentOf(directoryOf(...events, ...events))).toEqual(once);
    };
    fc.assert(fc.property(faulty, agrees));
  });
});

describe('a directory that keeps few accounts unpacked', () => {
  test('knows the same as one that keeps all, and counts the same', () => {
    const agrees = (log: readonly DirectoryEvent[]) => {
      const [few, all] = [new Directory({ kept: 1 }), new Directory({ kept: 100 })];
      for (const event of log) {
        few.apply(event);
        all.apply(event);
        expect(few.key('aaaaaaaaaa')?.key).toEqual(all.key('aaaaaaaaaa')?.key);
      }
      expect(contentOf(few)).toEqual(contentOf(all));
      expect(few.counts).toEqual(all.counts);
      expect(few.counts).toEqual(recounted(few));
    };
    fc.assert(fc.property(accountLogs, agrees), { numRuns: 150 });
  });

  test('keeps none of the others as objects', () => {
    const directory = new Directory({ kept: 1 });
    for (const event of [...inStream(opened()), ...otherAccount]) directory.apply(event);
    const first = directory.account(7)?.account;
    expect(directory.account(7)?.account).toBe(first);
    expect(directory.account(8)?.account?.id).toBe(8);
    expect(directory.account(7)?.account).toEqual(first);
    expect(directory.account(7)?.account).not.toBe(first);
  });
});

function recounted(directory: Directory) {
  const accounts = [...directory.accounts()];
  const keys = accounts.flatMap(({ account }) => [...(account?.keys.values() ?? [])]);
  return {
    disabledWebhooks: keys.filter(({ active, webhook }) => active && webhook?.disabled).length,
    unreadable: accounts.filter(({ unreadable }) => unreadable !== null).length,
  };
}
