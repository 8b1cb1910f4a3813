import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Directory, type DirectoryEvent } from '../../../../src/accounts/directory/fold/directory.ts';
import { DIRECTORY_VERSION, packedRow } from '../../../../src/accounts/directory/rows/packed-row.ts';
import { sharedRows, statesOf } from '../../../../src/accounts/directory/rows/shared-rows.ts';
import { type AccountEvent, accountStream } from '../../../../src/domain/account-events.ts';
import { AccountWork } from '../../../../src/push/dispatch/account-work.ts';
import { accountLogs } from '../../../support/accounts/account-logs.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  profileSet,
  rateSet,
  webhookSet,
} from '../../../support/accounts/account-samples.ts';
import { contentOf } from '../../../support/accounts/directory-content.ts';

const ANCHOR = { position: 10, stream: 'account-7', revision: 0, recordedAtMs: 5_000 };
const PREFIXES = ['aaaaaaaaaa', 'bbbbbbbbbb'];

/** A process's knowledge of the account streams, from the events that it received. */
class Follower {
  readonly directory = new Directory({ kept: 1 });
  readonly work = new AccountWork({
    queue: { change: async () => 0, heldAccounts: async () => [] },
    directory: this.directory,
  });

  apply(events: Iterable<DirectoryEvent>): this {
    for (const event of events) {
      this.directory.apply(event);
      if (!event.decoded.ok) continue;
      const { event: what, atMs } = event.decoded;
      this.work.seen(what, { position: event.position, atMs });
    }
    return this;
  }

  /** Returns the rows as threads get them, and applies an event of `meanwhile` between two accounts. */
  shared(position: number, meanwhile: readonly DirectoryEvent[] = []) {
    return sharedRows(this.#states(meanwhile), { position, anchor: ANCHOR });
  }

  *#states(meanwhile: readonly DirectoryEvent[]) {
    const going = meanwhile.values();
    for (const state of this.directory.states()) {
      yield state;
      const next = going.next();
      if (next.done !== true) this.apply([next.value]);
    }
  }

  known() {
    return {
      accounts: contentOf(this.directory).sort((a, b) => a.id - b.id),
      counts: this.directory.counts,
      owners: PREFIXES.map((prefix) => this.directory.key(prefix)?.entry.id),
      position: this.directory.position,
      changes: new Set([...this.work.atStart(() => true)].map((change) => JSON.stringify(change))),
    };
  }
}

/** A process that starts with the rows. It reads unreadable accounts again from `log`. */
function restored(shared: ReturnType<Follower['shared']>, log: readonly DirectoryEvent[]) {
  const follower = new Follower();
  const states = [...statesOf(shared)];
  follower.directory.restore(states, shared.position);
  for (const { id, unreadable } of states) {
    if (unreadable === null) continue;
    const upTo = log.filter(
      ({ stream, position }) => stream === accountStream(id) && position <= shared.position,
    );
    follower.directory.refold(id, upTo);
  }
  for (const { event, ...place } of follower.directory.keyEvents()) follower.work.seen(event, place);
  return follower;
}

describe('a process that starts from rows', () => {
  const taken = fc.tuple(accountLogs, fc.nat(200), fc.nat(60));

  test('knows the same as one that read the whole log, whenever they were saved', () => {
    const agrees = ([log, nth]: [DirectoryEvent[], number, number]) => {
      const first = log.slice(0, nth % (log.length + 1));
      const writer = new Follower().apply(first);
      const reader = restored(writer.shared(writer.directory.position), log);
      expect(reader.known()).toEqual(writer.known());
      reader.apply(log.slice(first.length));
      expect(reader.known()).toEqual(new Follower().apply(log).known());
    };
    fc.assert(fc.property(taken, agrees), { numRuns: 150 });
  });

  test('knows the same where events were applied while they were saved', () => {
    const agrees = ([log, nth, more]: [DirectoryEvent[], number, number]) => {
      const cut = nth % (log.length + 1);
      const writer = new Follower().apply(log.slice(0, cut));
      const { position } = writer.directory;
      const reader = restored(writer.shared(position, log.slice(cut, cut + more)), log);
      reader.apply(log.slice(cut));
      expect(reader.known()).toEqual(new Follower().apply(log).known());
    };
    fc.assert(fc.property(taken, agrees), { numRuns: 150 });
  });
});

test('an event that is applied again does not replace a later one of the key', () => {
  const at = (revision: number, event: AccountEvent) => ({
    ...{ position: revision, stream: 'account-7', revision },
    decoded: { ok: true, event, atMs: 5 } as const,
  });
  const off = at(3, onKey('KeySwitchedOff'));
  const events = [at(0, opened()), at(1, keyIssued()), at(2, onKey('WebhookRemoved')), off];
  const directory = new Directory();
  for (const event of [...events, ...events]) directory.apply(event);
  expect(directory.keyEvents()).toEqual([{ event: off.decoded.event, position: 3, atMs: 5 }]);
});

describe('the bytes of a row', () => {
  /** Every part of an account, an unreadable account, and events to be reported again. */
  function example(): Directory {
    const events: AccountEvent[] = [
      opened('Öst „Spedition“'),
      { type: 'AccountContactsSet', data: { account_id: 7, emails: ['ops@example.com'] } },
      { type: 'IntegrationEnabled', data: { account_id: 7 } },
      profileSet('2026-09-01T00:00:00Z', null),
      profileSet('2026-09-01T00:00:00Z', '2026-10-01T00:00:00Z', 'trial'),
      groupAdded(),
      corporateAdded(3),
      keyIssued({ label: 'ERP', allow_list: ['203.0.113.7'], driver_mobile: true }),
      webhookSet(),
      rateSet(),
      ...[onKey('WebhookDisabled'), onKey('WebhookEnabled'), onKey('WebhookDisabled')],
      keyIssued({ prefix: 'klmnopqrst', environment: 'production' }),
    ];
    const at = (revision: number, decoded: DirectoryEvent['decoded'], id = 7): DirectoryEvent => ({
      position: id * 1_000 + revision,
      stream: accountStream(id),
      revision,
      decoded,
    });
    const inSeven = events.map((event, revision) =>
      at(revision, { ok: true, event, atMs: revision * 1_000 }),
    );
    const inEight = [
      at(0, { ok: true, event: opened('Other', 8), atMs: 0 }, 8),
      at(1, { ok: true, event: keyIssued({ account_id: 8, prefix: 'uvwxyzabcd' }), atMs: 0 }, 8),
      at(2, { ok: false, reason: 'unknown event type Foo' }, 8),
    ];
    const directory = new Directory();
    for (const event of [...inSeven, ...inEight]) directory.apply(event);
    return directory;
  }

  // If this fails, an account has another shape or other text. Running processes would misread the stored
  // rows: raise DIRECTORY_VERSION and record the example of the new version.
  test('are those of the example recorded for their version, and are read back', () => {
    const name = `directory-rows-v${DIRECTORY_VERSION}.txt`;
    const recorded = readFileSync(new URL(`./examples/${name}`, import.meta.url), 'utf8');
    const rows = [...example().states()].map(packedRow);
    const text = rows.map(
      ({ packed, ...row }) => `${JSON.stringify(row)}\n${Buffer.from(packed).toString()}\n`,
    );
    expect(text.join('')).toBe(recorded);
    const shared = sharedRows(example().states(), { position: 0, anchor: ANCHOR });
    const directory = new Directory();
    directory.restore(statesOf(shared), 0);
    expect(contentOf(directory)).toEqual(contentOf(example()));
    expect(directory.counts).toEqual({ disabledWebhooks: 1, unreadable: 1 });
  });
});
