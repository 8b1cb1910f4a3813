/** The schema of the embedded log. Its triggers enforce that events never change. */
export const EVENT_MIGRATIONS = [
  `CREATE TABLE events (
     position INTEGER PRIMARY KEY AUTOINCREMENT,
     stream TEXT NOT NULL,
     revision INTEGER NOT NULL,
     id TEXT NOT NULL,
     type TEXT NOT NULL,
     recorded_at INTEGER NOT NULL, -- milliseconds
     data TEXT NOT NULL,           -- JSON, as is metadata
     metadata TEXT NOT NULL,
     UNIQUE (stream, revision)
   ) STRICT;
   -- Subscribers to accounts and operations skip the millions of transaction events.
   CREATE INDEX other_events ON events (position) WHERE stream NOT GLOB 'transaction-*';
   CREATE TABLE erased_streams (stream TEXT PRIMARY KEY, erased_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
   -- Streams whose data, and the ids that nobody is to know any more, are being replaced, within one transaction.
   CREATE TABLE rewriting (stream TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
   CREATE TRIGGER events_never_change
     BEFORE UPDATE OF position, stream, revision, type, recorded_at, metadata ON events
     BEGIN SELECT RAISE(ABORT, 'events never change'); END;
   CREATE TRIGGER data_never_changes BEFORE UPDATE OF id, data ON events
     WHEN NOT EXISTS (SELECT 1 FROM rewriting WHERE stream = OLD.stream)
     BEGIN SELECT RAISE(ABORT, 'events never change, unless their stream is rewritten'); END;
   CREATE TRIGGER events_stay BEFORE DELETE ON events
     WHEN NOT EXISTS (SELECT 1 FROM erased_streams WHERE stream = OLD.stream)
     BEGIN SELECT RAISE(ABORT, 'events stay unless their stream is erased'); END;
   CREATE TRIGGER erased_streams_stay BEFORE DELETE ON erased_streams
     BEGIN SELECT RAISE(ABORT, 'what was erased stays erased'); END;`,
];
