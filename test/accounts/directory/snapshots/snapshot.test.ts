import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Directory, type DirectoryEvent } from '../../../../projections/directory.ts';
import { LastKeyEvents } from '../../../../src/accounts/directory/last-key-events.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  readSnapshot,
  snapshotParts,
} from '../../../../src/accounts/directory/snapshots/snapshot.ts';
import { AccountReactions } from '../../../../src/deliveries/dispatch/account-reactions.ts';
import { type AccountEvent, accountStream } from '../../../../src/domain/account-events.ts';
import { accountLogs } from '../../../support/accounts/account-logs.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  profileSet,
  webhookSet,
} from '../../../support/accounts/account-samples.ts';
import { contentOf } from '../../../support/accounts/directory-content.ts';

const ANCHOR = { position: 10, stream: 'account-7', revision: 0, eventId: 'an id' };
const PREFIXES = ['aaaaaaaaaa', 'bbbbbbbbbb'];

/** What one process knows of the account streams, by the events that it received. */
class Follower {
  readonly directory = new Directory({ kept: 1 });
  readonly last = new LastKeyEvents();
  readonly reactions = new AccountReactions();

  apply(events: Iterable<DirectoryEvent>): this {
    for (const event of events) {
      this.directory.apply(event);
      if (!event.decoded.ok) continue;
      const { event: what, atMs } = event.decoded;
      this.last.add({ event: what, position: event.position, atMs });
      this.reactions.seen(what, { position: event.position, atMs });
    }
    return this;
  }

  /** Its parts, one item each; between two parts it applies an event of `meanwhile`. */
  *parts(meanwhile: readonly DirectoryEvent[] = []): Generator<Uint8Array> {
    const going = meanwhile.values();
    const content = { anchor: ANCHOR, events: this.last.events(), accounts: this.directory.states() };
    for (const part of snapshotParts(content, 1)) {
      yield part;
      const next = going.next();
      if (next.done !== true) this.apply([next.value]);
    }
  }

  known() {
    return {
      accounts: contentOf(this.directory),
      counts: this.directory.counts,
      owners: PREFIXES.map((prefix) => this.directory.key(prefix)?.entry.id),
      position: this.directory.position,
      ends: Object.fromEntries(this.reactions.ends()),
      enabled: Object.fromEntries(this.reactions.enabled()),
    };
  }
}

async function* oneByOne(parts: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* parts;
}

/** A process that begins with the snapshot; `log` is where it reads unreadable accounts again. */
async function restored(parts: Iterable<Uint8Array>, position: number, log: readonly DirectoryEvent[]) {
  const { events, accounts } = await readSnapshot(oneByOne(parts));
  const follower = new Follower();
  follower.directory.restore(accounts, position);
  for (const { id, unreadable } of accounts) {
    if (unreadable === null) continue;
    const ofAccount = (event: DirectoryEvent) => event.stream === accountStream(id);
    follower.directory.refold(
      id,
      log.filter((event) => ofAccount(event) && event.position <= position),
    );
  }
  for (const placed of events) follower.last.add(placed);
  for (const { event, ...place } of follower.last.inOrder()) follower.reactions.seen(event, place);
  return follower;
}

describe('a process that starts from a snapshot', () => {
  const taken = fc.tuple(accountLogs, fc.nat(200), fc.nat(60));

  test('knows the same as one that read the whole log, wherever it was taken', async () => {
    const agrees = async ([log, nth]: [DirectoryEvent[], number, number]) => {
      const first = log.slice(0, nth % (log.length + 1));
      const writer = new Follower().apply(first);
      const { position } = writer.directory;
      const reader = await restored(writer.parts(), position, log);
      expect(reader.known()).toEqual(writer.known());
      reader.apply(log.slice(first.length));
      expect(reader.known()).toEqual(new Follower().apply(log).known());
    };
    await fc.assert(fc.asyncProperty(taken, agrees), { numRuns: 150 });
  });

  test('knows the same from a snapshot that was taken while events were applied', async () => {
    const agrees = async ([log, nth, more]: [DirectoryEvent[], number, number]) => {
      const cut = nth % (log.length + 1);
      const writer = new Follower().apply(log.slice(0, cut));
      const { position } = writer.directory;
      const reader = await restored([...writer.parts(log.slice(cut, cut + more))], position, log);
      reader.apply(log.slice(cut));
      expect(reader.known()).toEqual(new Follower().apply(log).known());
    };
    await fc.assert(fc.asyncProperty(taken, agrees), { numRuns: 150 });
  });
});

test('an older event that is added later does not replace the last one', () => {
  const last = new LastKeyEvents();
  const off = { event: onKey('KeySwitchedOff'), position: 50, atMs: 5 };
  for (const placed of [off, { event: onKey('WebhookRemoved'), position: 30, atMs: 3 }]) last.add(placed);
  expect([...last.events()]).toEqual([off]);
});

describe('the text of a snapshot', () => {
  /** Every part of an account, an unreadable account, and events to be reported again. */
  function example(): Follower {
    const disabled = [onKey('WebhookDisabled'), onKey('WebhookEnabled'), onKey('WebhookDisabled')];
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
      ...disabled,
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
    return new Follower().apply([...inSeven, ...inEight]);
  }

  // One that fails says that an account has another shape, or other text. Processes that run now would take the
  // stored snapshot for what it is not: raise DIRECTORY_SNAPSHOT_VERSION and record the example of the new version.
  test('is that of the example recorded for its version, to the byte, and is read back', async () => {
    const name = `directory-snapshot-v${DIRECTORY_SNAPSHOT_VERSION}.txt`;
    const recorded = readFileSync(new URL(`./examples/${name}`, import.meta.url), 'utf8');
    const parts = [...example().parts()];
    expect(`${parts.map((part) => Buffer.from(part).toString()).join('\n')}\n`).toBe(recorded);
    const { anchor, events, accounts } = await readSnapshot(oneByOne(parts));
    expect(anchor).toEqual(ANCHOR);
    expect(events).toEqual([...example().last.events()]);
    const directory = new Directory();
    directory.restore(accounts, 0);
    expect(contentOf(directory)).toEqual(contentOf(example().directory));
    expect(directory.counts).toEqual({ disabledWebhooks: 1, unreadable: 1 });
  });

  test('comes in parts of a bounded size', () => {
    const directory = new Directory();
    for (let id = 1; id <= 20_000; id++) {
      const event = opened(`Account ${id}`, id);
      const decoded = { ok: true, event, atMs: 0 } as const;
      directory.apply({ position: id, stream: accountStream(id), revision: 0, decoded });
    }
    const parts = [...snapshotParts({ anchor: ANCHOR, events: [], accounts: directory.states() })];
    expect(parts.length).toBeGreaterThan(3);
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThan(256 * 1024);
  });
});
