import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { openSqliteEventStore } from '../../../../src/engines/sqlite/event-store/event-store.ts';
import { damageOf } from '../../../../src/event-store/damage.ts';
import { readToEnd } from '../../../../src/event-store/reads.ts';
import type { RecordedEvent } from '../../../../src/event-store/recorded-event.ts';
import { flipPage } from '../../../support/event-store/flip-bytes.ts';
import { named } from '../../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const COUNT = 1_200;
const STREAMS = ['operations', ...Array.from({ length: COUNT - 1 }, (_, n) => `transaction-${n + 2}`)];

let path: string;

/** Makes a closed store, in which the event of the stream `transaction-<n>` is at position n. */
beforeEach(async () => {
  path = join(temporaryFolder(), 'events.db');
  const store = opened();
  await store.append(
    STREAMS.map((stream) => ({ stream, expected: 'none', events: [named(`in ${stream} `)] })),
  );
  await store.close();
});

function opened() {
  const store = openSqliteEventStore({ path, clock: systemClock });
  onTestFinished(() => store.close());
  return store;
}

/** Changes the file without its guards, as no program does. */
function change(...statements: readonly string[]): void {
  const unguarded = [
    'DROP TRIGGER IF EXISTS events_never_change',
    'DROP TRIGGER IF EXISTS data_never_changes',
    "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'events'",
  ];
  for (const some of [unguarded, statements]) {
    const db = new DatabaseSync(path, { defensive: false } as object);
    for (const sql of ['PRAGMA writable_schema = ON', ...some]) db.exec(sql);
    db.close();
  }
}

/** Returns the positions of the events that reads return as damaged, and of those that a writer may have recorded so. */
async function unreadable() {
  const events = await readAll();
  const of = (isCertain: boolean): number[] =>
    events.flatMap((event) => (damageOf(event)?.isCertain === isCertain ? [event.position] : []));
  return { damaged: of(true), unclear: of(false), events };
}

async function readAll(): Promise<readonly RecordedEvent[]> {
  const store = opened();
  const events: RecordedEvent[] = [];
  for await (const batch of readToEnd(store, { prefixes: [], after: 0 })) events.push(...batch.events);
  return events;
}

describe('an event whose bytes are not what was recorded', () => {
  test('stands in its place in every read, and the others are whole', async () => {
    change(
      "UPDATE events SET data = 'no JSON' WHERE position = 9",
      "UPDATE events SET type = CAST(x'ff' AS TEXT), data = 'no JSON' WHERE position = 7",
      "UPDATE events SET recorded_at = 'then' WHERE position = 5",
      "UPDATE events SET data = CAST(x'7b22ff227d' AS TEXT) WHERE position = 1100",
      "UPDATE events SET metadata = x'00' WHERE position = 3",
      'UPDATE events SET revision = 0.5 WHERE position = 11',
      "UPDATE events SET stream = CAST(x'c3' AS TEXT), id = CAST(x'a9' AS TEXT) WHERE position = 13",
      `UPDATE events SET metadata = '"${'x'.repeat(64 * 1024)}"' WHERE position = 15`,
    );
    const { damaged, unclear, events } = await unreadable();
    expect(events).toHaveLength(COUNT);
    expect({ damaged, unclear }).toEqual({ damaged: [3, 5, 7, 11, 13, 1100], unclear: [9, 15] });
    const store = opened();
    for (const position of [3, 5, 7, 9, 1100]) {
      const place = { position, stream: `transaction-${position}`, revision: 0 };
      expect(store.readAt([position])).toMatchObject([place]);
      const [event] = await store.readStream(place.stream);
      expect(event && damageOf(event)).toMatchObject({
        position,
        event: { stream: place.stream, revision: 0 },
      });
    }
    expect(damageOf(events[12] as RecordedEvent)).toMatchObject({ position: 13, event: undefined });
  });

  test('is not one that has the sign for what is no text', async () => {
    change(`UPDATE events SET data = '{"name":"\ufffd"}' WHERE position = 11`);
    expect(opened().readAt([11])).toMatchObject([{ data: { name: '\ufffd' } }]);
  });
});

test('a page that cannot be read is an error of every read that meets it, which names the file and what to do', async () => {
  flipPage(path, 'in transaction-600 ');
  const store = opened();
  const damaged = expect.objectContaining({
    code: 'STORE_DAMAGED',
    message: expect.stringMatching(/events\.db is damaged .*docs\/operations\/troubleshooting\.md/),
  });
  const prefixes = ['transaction-'];
  expect(() => store.readAll({ prefixes, after: 596, limit: 7 })).toThrow(damaged);
  expect(() => store.readAt([600])).toThrow(damaged);
  await expect(store.readBackwards({ prefixes, before: 604, limit: 7 })).rejects.toEqual(damaged);
  await expect(store.readStream('transaction-600')).rejects.toEqual(damaged);
  await expect(store.readLast('transaction-600')).rejects.toEqual(damaged);
  await expect(readAll()).rejects.toEqual(damaged);
  expect(await store.readStream('transaction-7')).toHaveLength(1);
});
