import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import { changedBy, writesOf } from '../../../src/accounts/rows/writes-of.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { NONE_SKIPPED } from '../../../src/event-store/skipped-events.ts';
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

test('rows agree with the directory, however the log is cut into batches', async () => {
  await fc.assert(
    fc.asyncProperty(accountLogs, splits, async (events, ends) => {
      const directory = new AccountModel();
      for (const event of events) directory.apply(event);
      expect([...rowsDiffer(await applied(events, ends), directory)]).toEqual([]);
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
