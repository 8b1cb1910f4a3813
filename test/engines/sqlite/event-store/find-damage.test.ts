import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { FuelError } from '../../../../src/base/errors.ts';
import { damageIn } from '../../../../src/engines/sqlite/event-store/event-rows.ts';
import { openSqliteEventStore } from '../../../../src/engines/sqlite/event-store/event-store.ts';
import { damageOf } from '../../../../src/event-store/damage.ts';
import { Unreadable } from '../../../../src/event-store/recorded-event.ts';
import { flipBytes, flipPage } from '../../../support/event-store/flip-bytes.ts';
import { named } from '../../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const COUNT = 1_200;
const PAGE_BYTES = 8192;
/** The first bytes of pages of these kinds. */
const INDEX_LEAF = 0x0a;
const TABLE_INNER = 0x05;
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

const at = (position: number) => ({ position, event: { stream: `transaction-${position}`, revision: 0 } });

describe('a search for damage', () => {
  test('finds nothing in a whole log, also not where a text has the sign for what is no text', async () => {
    change(`UPDATE events SET data = '{"name":"\ufffd"}' WHERE position = 11`);
    const store = opened();
    expect(await store.findDamage()).toEqual([]);
    expect(store.readAt([11])).toMatchObject([{ data: { name: '\ufffd' } }]);
  });

  test('names each damaged row once, in order, and whether a writer may have recorded it so', async () => {
    change(
      "UPDATE events SET data = 'no JSON' WHERE position = 9",
      "UPDATE events SET type = CAST(x'ff' AS TEXT), data = 'no JSON' WHERE position = 7",
      "UPDATE events SET recorded_at = 'then' WHERE position = 5",
      "UPDATE events SET data = CAST(x'7b22ff227d' AS TEXT) WHERE position = 1100",
      "UPDATE events SET metadata = x'00' WHERE position = 3",
    );
    expect(await opened().findDamage()).toMatchObject([
      { ...at(3), isCertain: true },
      { ...at(5), isCertain: true },
      { ...at(7), isCertain: true },
      { ...at(9), isCertain: false, reason: 'data is not JSON' },
      { ...at(1100), isCertain: true },
    ]);
  });

  test('names whatever readers cannot read, and nothing else, though SQLite alone judges nearly all', async () => {
    const text = JSON.stringify({ a: [1, -0.5, 1e3, true, null, 'b\u00e9\n'], n: { m: {} } });
    const odd = [
      '\0',
      '\ufeff',
      '\v',
      '\u00a0',
      "'",
      ',',
      '+',
      '.',
      '0',
      '/*x*/',
      'NaN',
      '\\',
      '"',
      '\t',
      '\x01',
      '\x7f',
    ];
    const changed = odd.flatMap((sign) =>
      [0, 1, 5, 8, 13, 28, 31, 34, text.length - 1, text.length].map(
        (place) => text.slice(0, place) + sign + text.slice(place),
      ),
    );
    const deep = '['.repeat(5_000) + ']'.repeat(5_000);
    const cut = Array.from(text, (_, length) => text.slice(0, length));
    const texts = [
      ...changed,
      ...cut,
      deep,
      ' {} ',
      'null',
      '"\\ud800"',
      '"\\u00g0"',
      '01',
      '-',
      '1.',
      '.5',
      '1e',
    ];
    const hex = (value: string): string => `CAST(x'${Buffer.from(value).toString('hex')}' AS TEXT)`;
    change(
      ...texts.map((value, index) => `UPDATE events SET data = ${hex(value)} WHERE position = ${index + 2}`),
      "UPDATE events SET stream = CAST(x'c3' AS TEXT), id = CAST(x'a9' AS TEXT) WHERE position = 900",
      'UPDATE events SET recorded_at = 9007199254740992 WHERE position = 901',
      'UPDATE events SET recorded_at = -9223372036854775808 WHERE position = 902',
      'UPDATE events SET revision = 0.5 WHERE position = 903',
      "UPDATE events SET metadata = '{\"at\":1}' || char(0) || 'garbage' WHERE position = 904",
      `UPDATE events SET metadata = '"${'x'.repeat(64 * 1024)}"' WHERE position = 905`,
    );
    const store = opened();
    const positions = STREAMS.map((_, index) => index + 1);
    const unreadable = positions.filter((position) =>
      store
        .readAt([position])
        .some((event) => [event.data, event.metadata].some((part) => part instanceof Unreadable)),
    );
    expect(unreadable).toEqual(expect.arrayContaining([900, 901, 902, 903, 904, 905]));
    expect(unreadable.length).toBeLessThan(texts.length);
    expect((await store.findDamage()).map(({ position }) => position)).toEqual(unreadable);
    // A caller that reads all events of transactions finds the rest.
    const without = await store.findDamage({ withoutTexts: true });
    const { events } = store.readAll({ prefixes: ['transaction-'], after: 0, limit: 10_000 });
    const found = [...without, ...events.flatMap((event) => damageOf(event) ?? [])];
    const together = new Set(found.map(({ position }) => position));
    expect([...together].sort((one, other) => one - other)).toEqual(unreadable);
    expect(without.length).toBeLessThan(unreadable.length);
  });

  test('names the rows that cannot be looked up, though they follow the one before', async () => {
    const bytes = readFileSync(path);
    const pages = Array.from({ length: bytes.length / PAGE_BYTES }, (_, n) => n * PAGE_BYTES);
    const inner = pages.find((from) => bytes[from] === TABLE_INNER) ?? 0;
    // The key in its first cell, after a page number, is the last row of that page.
    const key = inner + bytes.readUInt16BE(inner + 12) + 4;
    const last = bytes.readUInt8(key);
    bytes.writeUInt8(last - 3, key);
    writeFileSync(path, bytes);
    const found = await opened().findDamage();
    expect(found.map(({ position }) => position)).toEqual([last - 2, last - 1, last]);
  });

  test('lets others have their turns, and ends between two steps where it is interrupted', async () => {
    const store = opened();
    let turns = 0;
    const count = (): void => {
      turns++;
      if (turns < 1_000) handle = setImmediate(count);
    };
    let handle = setImmediate(count);
    let asked = 0;
    /** Aborts at a step. There are 12 steps of a hundred rows, then 3 of 500 places. */
    const abortedAt = (step: number) =>
      ({
        throwIfAborted() {
          if (++asked === step) throw new Error(`ended at ${step}`);
        },
      }) as AbortSignal;
    await store.findDamage({ signal: abortedAt(Infinity) });
    clearImmediate(handle);
    expect(asked).toBe(15);
    expect(turns).toBeGreaterThan(11);
    for (const step of [1, 12, 13, 15]) {
      asked = 0;
      await expect(store.findDamage({ signal: abortedAt(step) })).rejects.toThrow(`ended at ${step}`);
    }
  });

  test('names what a lost page held, by the index of the streams, once each', async () => {
    flipPage(path, 'in transaction-600 ');
    const store = opened();
    const damage = await store.findDamage();
    const positions = damage.map(({ position }) => position);
    expect(positions).toContain(600);
    expect(positions).toEqual(positions.map((_, index) => (positions[0] ?? 0) + index));
    expect(damage).toEqual(
      positions.map((position) => expect.objectContaining({ ...at(position), isCertain: true })),
    );
  });

  test('names the index where that is lost: any event may be concerned', async () => {
    const bytes = readFileSync(path);
    const pages = Array.from({ length: bytes.length / PAGE_BYTES }, (_, n) => n * PAGE_BYTES);
    const ofIndex = pages.find((from) => {
      const page = bytes.subarray(from, from + PAGE_BYTES);
      return page[0] === INDEX_LEAF && page.includes('transaction-600');
    });
    flipBytes(path, ofIndex ?? 0, PAGE_BYTES);
    const [first, ...others] = await opened().findDamage();
    expect(first).toMatchObject({ position: 0, event: undefined, isCertain: true });
    expect(others.map(({ position }) => position)).toContain(600);
    expect(others[0]?.reason).toContain('an index of events.db does not have it');
  });

  test('names a row that the index of the other streams has lost', async () => {
    change(
      "CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'other_events'",
      "UPDATE sqlite_schema SET sql = replace(sql, 'NOT GLOB ''transaction-*''', '= ''nothing''') WHERE name = 'other_events'",
    );
    change('REINDEX other_events');
    change(
      "UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'other_events'",
      'DROP TABLE kept',
    );
    expect(await opened().findDamage()).toMatchObject([
      { position: 1, event: { stream: 'operations', revision: 0 }, isCertain: true },
    ]);
  });
});

describe('readers meet a lost page', () => {
  test('each event of it stands in its place, damaged, within the limit and the prefixes that were asked for', async () => {
    flipPage(path, 'in transaction-600 ');
    const store = opened();
    const [prefixes, limit] = [['transaction-'], 7];
    const positionsOf = (events: readonly { position: number }[]) => events.map(({ position }) => position);
    expect(positionsOf(store.readAll({ prefixes, after: 596, limit }).events)).toEqual([
      597, 598, 599, 600, 601, 602, 603,
    ]);
    const back = await store.readBackwards({ prefixes, before: 604, limit });
    expect(positionsOf(back.events)).toEqual([603, 602, 601, 600, 599, 598, 597]);
    const some = store.readAll({ prefixes: ['transaction-60'], after: 590, limit });
    expect(positionsOf(some.events)).toEqual([600, 601, 602, 603, 604, 605, 606]);
    const [event] = await store.readStream('transaction-600');
    expect(event).toMatchObject({ ...at(600).event, position: 600, data: { isDamage: true } });
    expect(store.readAt([600])).toMatchObject([{ position: 600, data: { isDamage: true } }]);
  });

  test('any other fault stays one', () => {
    const error = new FuelError('STORE_UNAVAILABLE', 'away');
    expect(() => damageIn(error)).toThrow(error);
  });
});
