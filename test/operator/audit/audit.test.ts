import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DomainEvent } from '../../../src/domain/events.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { type AuditFilter, type AuditLine, audit } from '../../../src/operator/audit/audit.ts';
import { startEventStoreDbDouble } from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { eventStoreDbAt } from '../../support/event-store/eventstoredb-under-test.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmedData } from '../../support/transactions/records.ts';
import { within } from '../../support/waiting.ts';

const AUTHOR = { actor: 'sam', command: 'fuel test' };
const START_MS = Date.UTC(2026, 8, 3);
const SECOND_MS = 1_000;

function opened(): { store: SqliteEventStore; path: string } {
  const path = join(temporaryFolder(), 'events.db');
  const store = openSqliteEventStore({ path, clock: new FakeClock() });
  onTestFinished(() => store.close());
  return { store, path };
}

const confirmed = (id: number, accountId = 7) =>
  ({
    type: 'TransactionConfirmed',
    data: confirmedData({ transaction_id: id, account_id: accountId }),
  }) as DomainEvent;
const accountOpened = (accountId: number): DomainEvent => ({
  type: 'AccountOpened',
  data: { account_id: accountId, name: `${accountId}` },
});
const erased = (id: number, accountId: number): DomainEvent => ({
  type: 'TransactionErased',
  data: { transaction_id: id, account_id: accountId, reason: 'asked for', leaves: [] },
});
const voided = (id: number): DomainEvent => ({
  type: 'TransactionVoided',
  data: { transaction_id: id, account_id: 7, voided_at: '2026-09-03T00:00:00.000Z', reason: null },
});

/** Records the events, one a second by the commands' clock. */
async function recorded(store: EventStore): Promise<void> {
  const log: [string, DomainEvent][] = [
    ['operations', { type: 'StoreNamed', data: { store_id: 'x' } }],
    ['account-7', accountOpened(7)],
    ['transaction-501', confirmed(501)],
    ['account-8', accountOpened(8)],
    ['transaction-502', confirmed(502, 8)],
    ['operations', erased(501, 7)],
    ['transaction-501', voided(501)],
    ['operations', erased(599, 8)],
  ];
  for (const [index, [stream, event]] of log.entries()) {
    const events = [newEvent(event, AUTHOR, START_MS + index * SECOND_MS)];
    await store.append([{ stream, expected: 'any', events }]);
  }
}

async function linesOf(
  store: EventStore,
  filter: AuditFilter = {},
  options = { follow: false, signal: new AbortController().signal },
): Promise<AuditLine[]> {
  const lines: AuditLine[] = [];
  for await (const line of audit(store, filter, options)) lines.push(line);
  return lines;
}

async function placesOf(store: EventStore, filter: AuditFilter): Promise<string[]> {
  return (await linesOf(store, filter)).map(({ stream, revision }) => `${stream}@${revision}`);
}

describe('an audit', () => {
  test('lists everything in the order of the log, with who did it, when and by which command', async () => {
    const { store } = opened();
    await recorded(store);
    const lines = await linesOf(store);
    expect(lines.map(({ type }) => type)).toEqual([
      'StoreNamed',
      'AccountOpened',
      'TransactionConfirmed',
      'AccountOpened',
      'TransactionConfirmed',
      'TransactionErased',
      'TransactionVoided',
      'TransactionErased',
    ]);
    expect(lines[6]).toEqual({
      stream: 'transaction-501',
      revision: 1,
      at: '2026-09-03T00:00:06.000Z',
      type: 'TransactionVoided',
      actor: 'sam',
      os_user: null,
      command: 'fuel test',
      correlation_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      data: voided(501).data,
    });
  });

  test('can be read newest first, and stops when its reader does', async () => {
    const { store } = opened();
    await recorded(store);
    const options = { follow: false, newest: true, signal: new AbortController().signal };
    const all = await linesOf(store);
    expect(await linesOf(store, {}, options)).toEqual(all.toReversed());
    const erasures = await linesOf(store, { types: ['TransactionErased', 'AccountOpened'] }, options);
    expect(erasures).toEqual(all.filter(({ type }) => /Erased|Opened/.test(type)).toReversed());
    const ofOne = await linesOf(store, { transactionId: 501 }, options);
    expect(ofOne).toEqual((await linesOf(store, { transactionId: 501 })).toReversed());
    const backwards = store.readBackwards.bind(store);
    let steps = 0;
    store.readBackwards = async (how) => {
      steps += 1;
      return backwards({ ...how, limit: 2 });
    };
    for await (const line of audit(store, {}, options)) if (line.revision === 2) break;
    expect(steps).toBe(1);
  });

  test('ends between two steps when it is asked to, also if nothing matches', async () => {
    const { store } = opened();
    await recorded(store);
    const backwards = store.readBackwards.bind(store);
    let steps = 0;
    store.readBackwards = async (how) => {
      steps += 1;
      return backwards({ ...how, limit: 1 });
    };
    const ending = new AbortController();
    setImmediate(() => ending.abort());
    const options = { follow: false, newest: true, signal: ending.signal };
    expect(await linesOf(store, { actor: 'nobody' }, options)).toEqual([]);
    expect(steps).toBe(1);
  });

  test('of an actor or a key has what the actor did, or what was done to the key', async () => {
    const { store } = opened();
    const off = (prefix: string): DomainEvent => ({
      type: 'KeySwitchedOff',
      data: { account_id: 7, prefix, reason: 'leaked' },
    });
    const by = (actor: string, event: DomainEvent) =>
      newEvent(event, { actor, osUser: 'deploy', command: 'fuel test' }, START_MS);
    const events = [by('sam', off('aaaaaaaaaa')), by('lee', off('bbbbbbbbbb')), by('lee', off('aaaaaaaaaa'))];
    await store.append([{ stream: 'account-7', expected: 'none', events }]);
    expect(await placesOf(store, { actor: 'lee' })).toEqual(['account-7@1', 'account-7@2']);
    expect(await placesOf(store, { prefix: 'aaaaaaaaaa' })).toEqual(['account-7@0', 'account-7@2']);
    expect(await linesOf(store, { actor: 'sam' })).toMatchObject([
      { os_user: 'deploy', data: { reason: 'leaked' } },
    ]);
  });

  test('of an account has its stream, and events of other streams that name it', async () => {
    const { store } = opened();
    await recorded(store);
    expect(await placesOf(store, { accountId: 7 })).toEqual([
      'account-7@0',
      'transaction-501@0',
      'operations@1',
      'transaction-501@1',
    ]);
  });

  test('has the notices of an account, and seals if a type names them', async () => {
    const { store } = opened();
    const noticeOf = (accountId: number): DomainEvent => ({
      type: 'NoticeSent',
      data: { account_id: accountId, event_id: 'x', audience: 'customer' },
    });
    const tree = { size: 1, root: '', checkpoint: '', edge: [], leaves: '' };
    const log: [string, DomainEvent][] = [
      ['notices-7', noticeOf(7)],
      ['notices-8', noticeOf(8)],
      ['seals', { type: 'LogSealed', data: { ...tree, last: { stream: 'notices-8', revision: 0 } } }],
    ];
    for (const [stream, event] of log)
      await store.append([{ stream, expected: 'any', events: [newEvent(event, AUTHOR, START_MS)] }]);
    expect(await placesOf(store, {})).toEqual(['notices-7@0', 'notices-8@0']);
    expect(await placesOf(store, { accountId: 7 })).toEqual(['notices-7@0']);
    expect(await placesOf(store, { types: ['NoticeSent'] })).toEqual(['notices-7@0', 'notices-8@0']);
    expect(await placesOf(store, { types: ['LogSealed'] })).toEqual(['seals@0']);
  });

  test('of a transaction has its stream and the operations that name it, in the order of the log', async () => {
    const { store } = opened();
    await recorded(store);
    const places = ['transaction-501@0', 'operations@1', 'transaction-501@1'];
    expect(await placesOf(store, { transactionId: 501 })).toEqual(places);
    const end = new AbortController();
    const following = audit(store, { transactionId: 501 }, { follow: true, signal: end.signal });
    const followed: string[] = [];
    for await (const { stream, revision } of following) {
      followed.push(`${stream}@${revision}`);
      if (followed.length === places.length) end.abort();
    }
    expect(followed).toEqual(places);
  });

  test.each([
    [{ types: ['TransactionErased'] }, ['operations@1', 'operations@2']],
    [{ types: ['AccountOpened'] }, ['account-7@0', 'account-8@0']],
    [{ types: ['TransactionConfirmed'] }, ['transaction-501@0', 'transaction-502@0']],
    [{ accountId: 8, types: ['TransactionConfirmed'] }, ['transaction-502@0']],
    [{ accountId: 8, types: ['TransactionErased'] }, ['operations@2']],
    [{ accountId: 8, transactionId: 501 }, []],
    [{ transactionId: 501, types: ['TransactionErased'] }, ['operations@1']],
  ])('has only that for which all of %j holds', async (filter, places) => {
    const { store } = opened();
    await recorded(store);
    expect(await placesOf(store, filter)).toEqual(places);
  });

  test('from and until a time includes both ends, by the clock of the commands', async () => {
    const { store } = opened();
    await recorded(store);
    const [sinceMs, untilMs] = [START_MS + 3 * SECOND_MS, START_MS + 5 * SECOND_MS];
    const places = ['account-8@0', 'transaction-502@0', 'operations@1'];
    expect(await placesOf(store, { sinceMs, untilMs })).toEqual(places);
    expect(await placesOf(store, { sinceMs: sinceMs + 1, untilMs: untilMs - 1 })).toEqual(places.slice(1, 2));
  });

  test('shows unreadable events, and events without an actor, as far as they can be read', async () => {
    const { store, path } = opened();
    const db = new DatabaseSync(path);
    const insert = db.prepare(
      `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata)
       VALUES ('account-9', ?, ?, 'AccountOpened', ?, ?, ?)`,
    );
    for (const [revision, metadata] of ['{broken', 'null', '{"actor":5}'].entries()) {
      insert.run(revision, `${revision}`, START_MS, '{broken', metadata);
    }
    db.close();
    const unknown = { actor: null, command: null, data: null, at: '2026-09-03T00:00:00.000Z' };
    expect(await linesOf(store, { accountId: 9 })).toMatchObject([unknown, unknown, unknown]);
    expect(await linesOf(store, { accountId: 8 })).toEqual([]);
    expect(await placesOf(store, { accountId: 9, sinceMs: START_MS + 1 })).toEqual([]);
  });

  test('that follows continues with later events until it is aborted', async () => {
    const { store } = opened();
    await store.append([
      { stream: 'account-7', expected: 'none', events: [newEvent(accountOpened(7), AUTHOR, 0)] },
    ]);
    const end = new AbortController();
    const lines = audit(store, {}, { follow: true, signal: end.signal });
    expect((await lines.next()).value).toMatchObject({ stream: 'account-7' });
    const later = lines.next();
    await store.append([
      { stream: 'account-8', expected: 'none', events: [newEvent(accountOpened(8), AUTHOR, 0)] },
    ]);
    expect((await later).value).toMatchObject({ stream: 'account-8' });
    const last = lines.next();
    end.abort();
    expect(await within(last, 1_000, 'it did not end')).toMatchObject({ done: true });
  });

  test('that does not follow reports at once that the event store is unavailable', async () => {
    const double = await startEventStoreDbDouble();
    const store = eventStoreDbAt(double.url);
    onTestFinished(() => store.close());
    await double.stop();
    const lines = linesOf(store, { accountId: 7 });
    await within(expect(lines).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' }), 10_000, 'it waits');
  });
});
