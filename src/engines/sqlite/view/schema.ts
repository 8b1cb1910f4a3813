import { optionalColumnOf, ROW_INDEX_NAMES, ROW_INDEXES } from '../../stored/rows.ts';

/**
 * An index contains all that finding a page needs, so that only the rows shown are read. A view that is built beside the
 * served one gets them when its rows are complete, which is faster.
 */
export const CREATE_INDEXES = ROW_INDEX_NAMES.map((name) => {
  const columns = [...ROW_INDEXES[name], 'status', 'created_at', 'id'].join(', ');
  const optional = optionalColumnOf(name);
  return `CREATE INDEX IF NOT EXISTS ${name} ON transactions (${columns})
     WHERE status IS NOT NULL${optional === undefined ? '' : ` AND ${optional} IS NOT NULL`};`;
}).join('\n');

export const DROP_INDEXES = ROW_INDEX_NAMES.map((name) => `DROP INDEX ${name};`).join(' ');

/** One row for each transaction; a tombstone is a row whose `status` is null. */
export const MIGRATIONS = [
  `CREATE TABLE checkpoint (
     only INTEGER PRIMARY KEY CHECK (only = 1), rendering INTEGER NOT NULL, store_id TEXT NOT NULL,
     position INTEGER NOT NULL, serves_from INTEGER NOT NULL, generation INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE parked (
     position INTEGER PRIMARY KEY, stream TEXT NOT NULL, revision INTEGER NOT NULL, type TEXT NOT NULL,
     reason TEXT NOT NULL, parked_at INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE transactions (
     id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL, revision INTEGER NOT NULL, status INTEGER,
     created_at INTEGER, corporate_id INTEGER, corporate_group_id INTEGER,
     head TEXT, mobile_number TEXT, fees TEXT, pump TEXT, odometer TEXT
   ) STRICT;${CREATE_INDEXES}`,
  // To find parked events by their stream, and to count them: it is a tenth of the table's size.
  'CREATE INDEX parked_by_stream ON parked (stream)',
  // Several files, of which one is served: a build beside it, and those whose place another one has taken.
  `ALTER TABLE checkpoint ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;
   CREATE TABLE generations (last INTEGER NOT NULL) STRICT; -- the highest number that was ever given
   INSERT INTO generations VALUES (coalesce((SELECT generation FROM checkpoint), 0));
   CREATE TABLE segments (
     up_to INTEGER PRIMARY KEY, after INTEGER NOT NULL, position INTEGER NOT NULL, events INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE resumed (
     only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL, covered INTEGER NOT NULL, events INTEGER NOT NULL
   ) STRICT;`,
  // The log is applied in its order: no parts of it, and how fast a build is stands beside its position.
  `DROP TABLE segments;
   DROP TABLE resumed;
   ALTER TABLE checkpoint ADD COLUMN since_at INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE checkpoint ADD COLUMN since_position INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE checkpoint ADD COLUMN since_events INTEGER NOT NULL DEFAULT 0;`,
  // The newest event that is applied, as JSON, by which another log is known.
  'ALTER TABLE checkpoint ADD COLUMN anchor TEXT',
];
