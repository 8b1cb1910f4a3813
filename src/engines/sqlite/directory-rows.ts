import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  DirectoryRows,
  RowDigest,
  RowsCheckpoint,
  RowsPage,
} from '../../accounts/directory/rows/rows.ts';
import type { Anchor } from '../../event-store/store-identity.ts';
import { Database, type OpenOptions } from './driver/database.ts';

export const MIGRATIONS = [
  '', // two of former versions
  '',
  `DROP TABLE IF EXISTS snapshot; DROP TABLE IF EXISTS chunks;
   CREATE TABLE checkpoint (
     id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, store_id TEXT NOT NULL,
     position INTEGER NOT NULL, anchor TEXT NOT NULL, seal TEXT NOT NULL
   ) STRICT;
   CREATE TABLE accounts (
     account_id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, position INTEGER NOT NULL,
     digest TEXT NOT NULL, packed BLOB NOT NULL
   ) STRICT;
   CREATE INDEX digests ON accounts (account_id, revision, position, digest);
   CREATE TABLE keys (
     prefix TEXT NOT NULL, account_id INTEGER NOT NULL, PRIMARY KEY (prefix, account_id)
   ) STRICT, WITHOUT ROWID;`,
];
const ROWS_A_READ = 500;
const DIGESTS_A_READ = 5_000;
const ROWS_A_REMOVAL = 500;

/** The rows of one machine, in a separate file. */
export function openSqliteDirectoryRows(options: {
  readonly path: string;
  readonly onPutAside?: OpenOptions['onPutAside'];
}): DirectoryRows {
  const db = new Database(options.path, { ...options, migrations: MIGRATIONS, durability: 'normal' });
  const select = db.prepare('SELECT version, store_id AS storeId, position, anchor, seal FROM checkpoint');
  const put = db.prepare('INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?, ?, ?, ?)');
  const columns = 'account_id AS accountId, revision, position';
  const after = 'WHERE account_id > ? ORDER BY account_id LIMIT';
  // A page as two values: without an object and an array of bytes for each row it takes two thirds of the time.
  const nextPage = db.prepare(
    `SELECT json_group_array(json_array(account_id, revision, position, octet_length(packed))) AS places,
       CAST(group_concat(CAST(packed AS TEXT), '') AS BLOB) AS packed, max(account_id) AS last
     FROM (SELECT * FROM accounts ${after} ${ROWS_A_READ})`,
  );
  const nextDigests = db.prepare(
    `SELECT ${columns}, digest FROM accounts INDEXED BY digests ${after} ${DIGESTS_A_READ}`,
  );
  const upsert = db.prepare('INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?)');
  const addKey = db.prepare('INSERT OR IGNORE INTO keys VALUES (?, ?)');
  const ownersOf = db.prepare('SELECT account_id FROM keys WHERE prefix = ?');
  const remove = db.prepare(
    `DELETE FROM accounts WHERE account_id IN (SELECT account_id FROM accounts LIMIT ${ROWS_A_REMOVAL})`,
  );
  const removeKeys = db.prepare('DELETE FROM keys');

  function current(): RowsCheckpoint | undefined {
    db.assertOpen();
    const row = select.get();
    if (row === undefined) return undefined;
    const { anchor, ...rest } = row as unknown as Omit<RowsCheckpoint, 'anchor'> & { anchor: string };
    return { ...rest, anchor: JSON.parse(anchor) as Anchor };
  }

  function replace({ version, storeId, position, anchor, seal }: RowsCheckpoint): void {
    put.run(version, storeId, position, JSON.stringify(anchor), seal);
  }

  return {
    checkpoint: async () => current(),
    async *rows(): AsyncGenerator<RowsPage> {
      for (let last = -1; ; ) {
        await nextTurn();
        db.assertOpen();
        const page = nextPage.get(last);
        if (page?.last == null) return;
        yield { places: JSON.parse(page.places as string), packed: page.packed as Uint8Array };
        last = page.last as number;
      }
    },
    async *digests(): AsyncGenerator<RowDigest[]> {
      for (let last: number | undefined = -1; last !== undefined; ) {
        await nextTurn();
        db.assertOpen();
        const rows = nextDigests.all(last) as unknown as RowDigest[];
        if (rows.length > 0) yield rows;
        last = rows.at(-1)?.accountId;
      }
    },
    async owners(prefix) {
      db.assertOpen();
      return ownersOf.all(prefix).map((row) => row.account_id as number);
    },
    save: (rows, checkpoint, expected) =>
      db.write(() => {
        if (current()?.seal !== expected) return false;
        for (const { accountId, revision, position, digest, packed, prefixes } of rows) {
          upsert.run(accountId, revision, position, digest, packed);
          for (const prefix of prefixes) addKey.run(prefix, accountId);
        }
        replace(checkpoint);
        return true;
      }),
    async clear(checkpoint) {
      await db.write(() => {
        replace(checkpoint);
        removeKeys.run();
      });
      while (await db.write(() => current()?.seal === checkpoint.seal && remove.run().changes > 0))
        await nextTurn();
    },
    async close() {
      db.close();
    },
  };
}
