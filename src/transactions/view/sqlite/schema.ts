/**
 * One row a transaction; a tombstone is a row whose `status` is null. Each index fits one combination of
 * filters and carries all that finding a page needs, so that only the rows shown are read.
 */
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
   ) STRICT;
   CREATE INDEX by_account ON transactions (account_id, status, created_at, id) WHERE status IS NOT NULL;
   CREATE INDEX by_corporate ON transactions (account_id, corporate_id, status, created_at, id)
     WHERE status IS NOT NULL;
   CREATE INDEX by_group ON transactions (account_id, corporate_group_id, status, created_at, id)
     WHERE status IS NOT NULL AND corporate_group_id IS NOT NULL;
   CREATE INDEX by_group_and_corporate
     ON transactions (account_id, corporate_group_id, corporate_id, status, created_at, id)
     WHERE status IS NOT NULL AND corporate_group_id IS NOT NULL;`,
  // Counted by it, a tenth of the table's size, and found by its stream.
  'CREATE INDEX parked_by_stream ON parked (stream)',
];

export interface RunKind {
  /** Filtered by corporate group. */
  readonly group: boolean;
  /** Filtered by corporate. */
  readonly corporate: boolean;
  /** The records of one millisecond below an id; otherwise those of a range of time. */
  readonly ties: boolean;
}

/**
 * Finds the places of one run of records, newest first: one account, one status, one of each filter given.
 * Going on behind a place takes two searches, ties first: SQLite would use only the time of a row value such
 * as `(created_at, id) < (?, ?)` and read every record of that millisecond again.
 */
export function runQuery({ group, corporate, ties }: RunKind): string {
  const filters = [group ? 'group' : '', corporate ? 'corporate' : ''].filter((name) => name !== '');
  return `SELECT created_at, id FROM transactions INDEXED BY by_${filters.join('_and_') || 'account'}
    WHERE account_id = $account ${group ? 'AND corporate_group_id = $group' : ''}
      ${corporate ? 'AND corporate_id = $corporate' : ''} AND status = $status
      AND ${ties ? 'created_at = $at AND id < $below' : 'created_at >= $from AND created_at < $before'}
    ORDER BY created_at DESC, id DESC LIMIT $limit`;
}
