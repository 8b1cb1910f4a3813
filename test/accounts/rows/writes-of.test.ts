import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ACCOUNTS_STORE, KEYS } from '../../../src/accounts/rows/tables.ts';
import { changedBy, writesOf } from '../../../src/accounts/rows/writes-of.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { NONE_SKIPPED } from '../../../src/event-store/skipped-events.ts';
import { put } from '../../../src/tables/tables.ts';
import { accountLogs } from '../../support/accounts/account-logs.ts';
import { AccountModel, type ModelEvent } from '../../support/accounts/account-model.ts';
import { allRows, rowsDiffer } from '../../support/accounts/rows-agree.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** An event as a store returns it. One that can't be read has a type that nobody knows. */
function recorded({ position, stream, revision, decoded }: ModelEvent): RecordedEvent {
  const event = decoded.ok ? decoded.event : { type: 'Foo', data: {} };
  const made = newEvent(event as never, AUTHOR, decoded.ok ? decoded.atMs : 0);
  return { ...made, position, stream, revision, recordedAtMs: 0 };
}

/** Applies a log in batches that end after these numbers of events, each of them `times` times. */
async function applied(events: readonly ModelEvent[], ends: readonly number[], times = 1) {
  const tables = new MemoryStores().open(ACCOUNTS_STORE, new FakeClock());
  const log = events.map(recorded);
  const readStreams = async (streams: readonly string[]) =>
    streams.map((stream) => log.filter((event) => event.stream === stream)); // a stream may have grown meanwhile
  const place = { store: { readStreams }, tables, skipped: NONE_SKIPPED };
  const at = [0, ...new Set(ends.map((end) => Math.min(end, log.length))), log.length].sort((a, b) => a - b);
  for (let time = 0; time < times; time++)
    for (const [index, from] of at.entries()) {
      const batch = log.slice(from, at[index + 1] ?? log.length);
      await tables.write((await writesOf(changedBy(batch), place)).writes);
    }
  return allRows(tables);
}

const splits = fc.array(fc.nat(250), { maxLength: 12 });

test('rows agree with the model, however the log is cut into batches', async () => {
  await fc.assert(
    fc.asyncProperty(accountLogs, splits, async (events, ends) => {
      const model = new AccountModel();
      for (const event of events) model.apply(event);
      expect([...rowsDiffer(await applied(events, ends), model)]).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

test('rows that are made a second time stay as they are, and so do the rows of a log that is read again', async () => {
  await fc.assert(
    fc.asyncProperty(accountLogs, splits, async (events, ends) => {
      const once = await applied(events, ends);
      expect(await applied(events, ends, 2)).toEqual(once);
    }),
    { numRuns: 20 },
  );
});

test('an account that cannot be read closes all of its keys, also many that its stream no longer shows', async () => {
  const tables = new MemoryStores().open(ACCOUNTS_STORE, new FakeClock());
  const issued = { account_id: 7, settings: '{}', access: '{}', unreadable: null, webhook: 'active' };
  const none = { ended_at: null, ended_reason: null, enabled_at: null, master_key: null, disabled_at: null };
  const keys = Array.from({ length: 10_001 }, (_, index) => ({
    ...issued,
    ...none,
    prefix: `k${String(index).padStart(9, '0')}`,
    position: 1,
  }));
  await tables.write(keys.map((row) => put(KEYS, row)));
  const unknown = { type: 'Foo', data: {}, metadata: {}, id: 'x', recordedAtMs: 0 };
  const event = { ...unknown, stream: 'account-7', revision: 0, position: 2 } as RecordedEvent;
  const place = { store: { readStreams: async () => [] }, tables, skipped: NONE_SKIPPED };
  await tables.write((await writesOf(changedBy([event]), place)).writes);
  expect(await tables.count(KEYS, { index: 'by_webhook' }, 20_000)).toBe(0);
});
