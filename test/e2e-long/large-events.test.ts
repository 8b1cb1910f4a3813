import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { MAX_BYTES } from '../../src/event-store/recorded-event.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { eventStoreDbOnDouble } from '../support/event-store/eventstoredb-under-test.ts';
import { named, record } from '../support/event-store/store-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const COUNT = 12;
/** Metadata of 3 MB. Parsed, one such value takes most of the small heap. */
const METADATA = `{"a":[${'{},'.repeat(1_000_000)}{}]}`;
const HEAP_MB = 64;
const REASON = `metadata has ${METADATA.length} bytes, more than ${MAX_BYTES.metadata}`;
const PROGRAM = fileURLToPath(new URL('../support/event-store/follow-large.ts', import.meta.url));

/** Returns what the readers and followers of a process with a small heap made of the large events. */
async function followed(env: Readonly<Record<string, string>>) {
  const args = [`--max-old-space-size=${HEAP_MB}`, PROGRAM, String(COUNT)];
  const options = { env: { ...process.env, FUEL_ENVIRONMENT: 'staging', ...env } };
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return JSON.parse(stdout) as Record<string, unknown> & { readonly peakMb: number };
}

const EXPECTED = {
  accounts: [REASON],
  parked: [REASON],
  handed: COUNT,
  read: COUNT,
  backwards: COUNT,
};

test('a dozen events with 3 MB of metadata each stop no reader or follower of EventStoreDB', async () => {
  const double = await startEventStoreDbDouble();
  onTestFinished(() => double.stop());
  const metadata = Buffer.from(METADATA);
  for (const stream of ['account', 'transaction']) {
    for (let number = 1; number <= COUNT; number++) {
      const event = { type: 'AccountOpened', isJson: true, data: Buffer.from('{}'), metadata };
      await double.record(`${stream}-${number}`, event);
    }
  }
  const { peakMb, ...found } = await followed({
    EVENTSTORE_URL: double.url,
    FUEL_DATA_DIR: temporaryFolder(),
  });
  expect(found).toEqual(EXPECTED);
  expect(peakMb).toBeLessThan(600);
});

test('a dozen events with 3 MB of metadata each stop no reader or follower of the embedded log', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'events.db');
  await openSqliteEventStore({ path, clock: systemClock }).close();
  const outsider = new DatabaseSync(path);
  const insert = outsider.prepare(
    `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata)
     VALUES (?, 0, ?, 'AccountOpened', 0, '{}', ?)`,
  );
  for (const stream of ['account', 'transaction']) {
    for (let number = 1; number <= COUNT; number++) {
      insert.run(`${stream}-${number}`, crypto.randomUUID(), METADATA);
    }
  }
  outsider.close();
  const { peakMb, ...found } = await followed({ FUEL_DATA_DIR: folder });
  expect(found).toEqual(EXPECTED);
  expect(peakMb).toBeLessThan(600);
});

test.each<[string, () => Promise<EventStore>]>([
  ['EventStoreDB', eventStoreDbOnDouble],
  [
    'the embedded log',
    async () => openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock: systemClock }),
  ],
])('%s takes no event that could not be read again, and none without a type', async (_, open) => {
  const store = await open();
  onTestFinished(() => store.close());
  const event = named('a');
  const text = (bytes: number): string => 'x'.repeat(bytes);
  const bad = [
    { ...event, type: '' },
    { ...event, data: { name: text(MAX_BYTES.data) } },
    { ...event, metadata: { ...event.metadata, actor: text(MAX_BYTES.metadata) } },
  ];
  for (const refused of bad) {
    const appending = store.append([{ stream: 'account-1', expected: 'any', events: [event, refused] }]);
    await expect(appending).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
  }
  await record(store, 'account-1', 'b');
  expect(await store.readStream('account-1')).toHaveLength(1);
});
