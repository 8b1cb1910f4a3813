import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ACCOUNTS } from '../../../src/accounts/rows/tables.ts';
import { world } from '../../../src/base/world.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { skipEvent } from '../../../src/operator/parked/skip-event.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { keyIssued, onKey, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { KeptRows } from '../../support/accounts/kept-rows.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** A store whose events are an opened account 7 with a key and a webhook, or others. */
async function openStore(...events: readonly AccountEvent[]): Promise<SqliteEventStore> {
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock: new FakeClock() });
  onTestFinished(() => store.close());
  for (const event of events.length > 0 ? events : [opened(), keyIssued(), webhookSet()])
    await append(store, event);
  return store;
}

async function append(store: SqliteEventStore, event: AccountEvent, stream = 'account-7'): Promise<number> {
  const [result] = await store.append([{ stream, expected: 'any', events: [newEvent(event, AUTHOR, 0)] }]);
  if (result?.kind !== 'appended') throw new Error('not appended');
  return result.position;
}

/** Says if the key had a usable webhook at each position. */
async function readsAt(history: AccountHistory, positions: readonly number[]): Promise<unknown[]> {
  const reads: unknown[] = [];
  for (const position of positions) {
    await history.look([{ accountId: 7, position }]);
    const judged = await history.asOf({ accountId: 7, position }, (account) => {
      const webhook = [...(account?.keys.values() ?? [])][0]?.webhook;
      return account === undefined ? 'not open' : webhook ? (webhook.disabled ? 'disabled' : 'on') : 'none';
    });
    reads.push(typeof judged === 'string' ? judged : 'unreadable');
  }
  return reads;
}

test('an account is as its events before the place left it, in whatever order places are asked for', async () => {
  const store = await openStore();
  for (const type of ['WebhookDisabled', 'WebhookEnabled'] as const) await append(store, onKey(type));
  const history = new AccountHistory({ store });
  expect(await readsAt(history, [1, 2, 3, 4, 5, 6])).toEqual([
    'not open',
    'none',
    'none',
    'on',
    'disabled',
    'on',
  ]);
  expect(await readsAt(history, [5, 1, 6, 4])).toEqual(['disabled', 'not open', 'on', 'on']);
});

test('what is recorded after a stream was read counts as soon as a later place is asked for', async () => {
  const store = await openStore();
  const history = new AccountHistory({ store });
  expect(await readsAt(history, [4])).toEqual(['on']);
  await append(store, onKey('WebhookRemoved'));
  expect(await readsAt(history, [4, 5])).toEqual(['on', 'none']);
});

test('the answer is the same whether or not the rows are far enough to give it', async () => {
  const kinds = fc.constantFrom('WebhookDisabled', 'WebhookEnabled', 'WebhookRemoved', 'set', 'other');
  const step = fc.record({ kind: kinds, follow: fc.boolean(), ask: fc.boolean() });
  const agrees = async (steps: readonly { kind: string; follow: boolean; ask: boolean }[]) => {
    const store = await openStore();
    const rows = new KeptRows(store, new FakeClock());
    const live = new AccountHistory({ store, rows: rows.tables });
    for (const { kind, follow: follows, ask } of steps) {
      if (kind === 'other') await append(store, opened('Other', 8), 'account-8');
      else if (kind === 'set') await append(store, webhookSet({ secret: null }));
      else await append(store, onKey(kind as 'WebhookDisabled'));
      if (follows) await rows.follow();
      const head = store.end();
      const places = ask ? [head + 1, head, 3] : [head + 1];
      const afresh = new AccountHistory({ store });
      expect(await readsAt(live, places)).toEqual(await readsAt(afresh, places));
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 8 }), agrees), { numRuns: 30 });
});

test('an event that cannot be read makes the account unreadable for all that comes later, not before', async () => {
  const store = await openStore();
  await append(store, { type: 'KeySwitchedOff', data: { account_id: 7, prefix: 'neverthere' } });
  const history = new AccountHistory({ store });
  expect(await readsAt(history, [4, 5, 4])).toEqual(['on', 'unreadable', 'on']);
  await append(store, onKey('WebhookDisabled'));
  await append(store, onKey('WebhookEnabled'));
  expect(await readsAt(history, [7, 8])).toEqual(['unreadable', 'unreadable']);
});

test('an account that cannot be read is read again at most once a second, and the operator’s skip then counts', async () => {
  const steady = vi.spyOn(world, 'steadyMs').mockReturnValue(0);
  onTestFinished(() => steady.mockRestore());
  const store = await openStore();
  await append(store, { type: 'KeySwitchedOff', data: { account_id: 7, prefix: 'neverthere' } });
  const reads = vi.spyOn(store, 'readStreams');
  const history = new AccountHistory({ store });
  expect(await readsAt(history, [5])).toEqual(['unreadable']);
  const parked = (await store.readStream('account-7')).find(({ position }) => position === 4);
  await skipEvent(store, 4, { author: AUTHOR, reason: 'by hand', clock: new FakeClock(), parked });
  reads.mockClear();
  steady.mockReturnValue(999);
  expect(await readsAt(history, [5, 5])).toEqual(['unreadable', 'unreadable']);
  expect(reads).not.toHaveBeenCalled();
  steady.mockReturnValue(1_000);
  expect(await readsAt(history, [5, 4])).toEqual(['on', 'on']);
});

test('a replay of a long history reads an account once, not for each event', async () => {
  const store = await openStore();
  for (let index = 0; index < 50; index++) await append(store, opened('Other', 8), 'account-8');
  const reads = vi.spyOn(store, 'readStreams');
  const history = new AccountHistory({ store });
  await readsAt(
    history,
    Array.from({ length: 50 }, (_, index) => index + 4),
  );
  expect(reads.mock.calls.filter(([[stream]]) => stream === 'account-7')).toHaveLength(1);
});

test('what is recorded while a stream is being read counts for later positions', async () => {
  const store = await openStore();
  let meanwhile: () => Promise<unknown> = async () => undefined;
  const andThen = async <T>(result: Promise<T>): Promise<T> => {
    const value = await result;
    const act = meanwhile;
    meanwhile = async () => undefined;
    await act();
    return value;
  };
  const reading = replacing(store, {
    readStreams: (...given) => andThen(store.readStreams(...given)),
    head: () => andThen(store.head()),
  });
  const history = new AccountHistory({ store: reading });
  meanwhile = async () => {
    await append(store, onKey('WebhookRemoved')); // at 4
    await append(store, opened('Other', 8), 'account-8');
  };
  expect(await readsAt(history, [4])).toEqual(['on']);
  expect(await readsAt(history, [5])).toEqual(['none']);
  await append(store, webhookSet({ secret: null })); // at 6
  meanwhile = async () => {
    await append(store, onKey('WebhookDisabled')); // at 7
    await append(store, opened('Third', 9), 'account-9');
  };
  expect(await readsAt(history, [7, 8])).toEqual(['on', 'disabled']);
});

test('rows of an unreadable account do not answer: the stream says from where on it is', async () => {
  const store = await openStore();
  await append(store, { type: 'AccountFrozen', data: { account_id: 7 } } as unknown as AccountEvent);
  await append(store, opened('Other', 8), 'account-8');
  const rows = new KeptRows(store, new FakeClock());
  await rows.follow();
  expect((await rows.tables.get(ACCOUNTS, [7]))[0]?.unreadable).toContain('AccountFrozen');
  const history = new AccountHistory({ store, rows: rows.tables });
  expect(await readsAt(history, [4, 5, 6])).toEqual(['on', 'unreadable', 'unreadable']);
});

test('a stream that opens another account cannot be read, as in the rows', async () => {
  const store = await openStore(opened('Eight', 8), keyIssued(), webhookSet());
  const history = new AccountHistory({ store });
  expect(await readsAt(history, [2, 4])).toEqual(['unreadable', 'unreadable']);
});

test('rows that are exactly there answer without a read of the stream', async () => {
  const store = await openStore();
  const rows = new KeptRows(store, new FakeClock());
  await append(store, opened('Other', 8), 'account-8'); // at 4
  await rows.follow();
  const unread = interposed(store, ['readStreams'], () => {
    throw new Error('the stream is read');
  });
  const history = new AccountHistory({ store: unread, rows: rows.tables });
  expect(await readsAt(history, [4])).toEqual(['on']);
});

test('an account that nobody has looked at is read from its stream, whatever other rows say', async () => {
  const store = await openStore();
  await append(store, opened('Other', 8), 'account-8');
  const rows = new KeptRows(store, new FakeClock());
  await rows.follow();
  const history = new AccountHistory({ store, rows: rows.tables });
  await history.look([{ accountId: 8, position: 4 }]);
  const keys = await history.asOf({ accountId: 7, position: 4 }, (account) => account?.keys.size);
  expect(keys).toBe(1);
});
