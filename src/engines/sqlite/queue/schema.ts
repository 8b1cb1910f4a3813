/** Which part of the index of the ids a delivery is in: those of a thousand that were stored one after the other. */
export const PART_OF_SEQ = 'seq >> 10';

/**
 * The delivery log's tables. A delivery is pending where it has a due time, and has ended where it has an end;
 * held is neither. Records and attempts, which never change, have separate tables, so that a change of state
 * rewrites a small row.
 *
 * `log` is written here, so that the commit that creates a file also names it.
 */
export function deliveryMigrations(log: { readonly id: string; readonly startedAtMs: number }): string[] {
  return [
    `CREATE TABLE log (
       only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL, started_at INTEGER NOT NULL
     ) STRICT;
     INSERT INTO log VALUES (1, '${log.id}', ${log.startedAtMs});
     ${tableOfDeliveries('deliveries')}
     CREATE TABLE records (
       delivery INTEGER PRIMARY KEY, head TEXT NOT NULL, mobile_number TEXT, fees TEXT NOT NULL, pump TEXT, odometer TEXT
     ) STRICT;
     CREATE TABLE attempts (
       seq INTEGER PRIMARY KEY,
       delivery INTEGER NOT NULL,
       cycle INTEGER NOT NULL,
       number INTEGER NOT NULL,
       started_at INTEGER NOT NULL,
       duration REAL NOT NULL,        -- milliseconds
       outcome TEXT NOT NULL          -- JSON
     ) STRICT;
     CREATE INDEX attempts_of ON attempts (delivery);
     CREATE TABLE lanes (
       prefix TEXT PRIMARY KEY,
       next_due_at INTEGER,           -- the least due time of its deliveries
       failed_in_a_row INTEGER NOT NULL DEFAULT 0,
       failing_since INTEGER,
       last_answers TEXT NOT NULL DEFAULT '[]' -- JSON
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX lanes_due ON lanes (next_due_at) WHERE next_due_at IS NOT NULL;
     -- A transaction's events may arrive in either order.
     CREATE TABLE withdrawals (transaction_id INTEGER PRIMARY KEY) STRICT;`,
    'CREATE INDEX failing ON lanes (failed_in_a_row) WHERE failed_in_a_row > 0;',
    `ALTER TABLE withdrawals ADD COLUMN made_at INTEGER NOT NULL DEFAULT 0;
     UPDATE withdrawals SET made_at = ${log.startedAtMs}; -- by now; their own time is not known
     CREATE INDEX withdrawals_by_time ON withdrawals (made_at);`,
    'ALTER TABLE lanes ADD COLUMN reset_at INTEGER NOT NULL DEFAULT 0;',
    WITHOUT_RANDOM_INDEX,
  ];
}

/**
 * In a former version the id was unique by an index of its own, of which each delivery wrote another page, ids being
 * random. Its transaction and its key say the same; and `by_id` has the ids in parts, each of some pages only. An account's
 * deliveries are those of its lanes.
 */
const WITHOUT_RANDOM_INDEX = `
  ${tableOfDeliveries('rebuilt')}
  INSERT INTO rebuilt SELECT * FROM deliveries;
  DROP TABLE deliveries;
  ALTER TABLE rebuilt RENAME TO deliveries;
  CREATE INDEX by_id ON deliveries (${PART_OF_SEQ}, id);
  CREATE UNIQUE INDEX by_transaction ON deliveries (transaction_id, prefix);
  CREATE INDEX due_in_lane ON deliveries (prefix, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX held_of_account ON deliveries (account_id) WHERE state = 'held';
  CREATE INDEX held_of_lane ON deliveries (prefix) WHERE state = 'held';
  CREATE INDEX ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX by_time ON deliveries (created_at);
  CREATE INDEX by_lane ON deliveries (prefix, created_at);
  -- What operators look for among millions of delivered ones.
  CREATE INDEX by_state ON deliveries (state, created_at, prefix, account_id)
    WHERE state IN ('failed', 'held', 'withdrawn');
  ALTER TABLE lanes ADD COLUMN account_id INTEGER; -- of its deliveries, where it has had any
  UPDATE lanes SET account_id = (SELECT account_id FROM deliveries WHERE deliveries.prefix = lanes.prefix LIMIT 1);
  CREATE INDEX lanes_of_account ON lanes (account_id);`;

function tableOfDeliveries(name: string): string {
  return `CREATE TABLE ${name} (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    prefix TEXT NOT NULL,
    account_id INTEGER NOT NULL,
    transaction_id INTEGER NOT NULL,
    type TEXT NOT NULL,
    created_at INTEGER NOT NULL,   -- milliseconds, as all times
    position INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'delivered', 'failed', 'withdrawn')),
    reason TEXT,
    ended_at INTEGER,
    cycle INTEGER NOT NULL,
    attempts_in_cycle INTEGER NOT NULL,
    due_at INTEGER,                -- while it is claimed: when the lease ends
    lease TEXT,
    CHECK ((due_at IS NOT NULL) = (state = 'pending')),
    CHECK ((ended_at IS NULL) = (state IN ('pending', 'held')))
  ) STRICT;`;
}
