import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LastUse, RequestJournal } from '../../pull/request-journal.ts';
import { requestOf, type StoredRequest, storedRequest } from '../stored/requests.ts';
import { Database, type OpenOptions } from './driver/database.ts';

export const MIGRATIONS = [
  `CREATE TABLE requests (
     seq INTEGER PRIMARY KEY, prefix TEXT NOT NULL, at INTEGER NOT NULL, address TEXT, status INTEGER NOT NULL,
     code TEXT, rows INTEGER, query TEXT
   ) STRICT;
   CREATE INDEX by_key ON requests (prefix, at);
   CREATE INDEX by_time ON requests (at);`,
];
const PAGE = 500;
/** Removed in one write, which takes some milliseconds: the thread also answers requests. */
const TRIMMED_AT_ONCE = 100;

/** What keys asked for, in a file that several threads and processes share. */
export function openSqliteRequests({
  path,
  onPutAside,
}: {
  readonly path: string;
  readonly onPutAside?: OpenOptions['onPutAside'];
}): RequestJournal {
  const db = new Database(path, { migrations: MIGRATIONS, durability: 'normal', onPutAside });
  const insert = db.prepare(
    'INSERT INTO requests (prefix, at, address, status, code, rows, query) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const page = db.prepare(
    `SELECT * FROM requests WHERE prefix = ? AND at >= ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT ${PAGE}`,
  );
  const last = db.prepare(
    'SELECT at, address FROM requests WHERE prefix = ? ORDER BY at DESC, seq DESC LIMIT 1',
  );
  const trim = db.prepare(
    `DELETE FROM requests WHERE seq IN (
       SELECT seq FROM requests AS old WHERE at >= ? AND at < ? AND EXISTS (
         SELECT 1 FROM requests AS newer WHERE newer.prefix = old.prefix AND (newer.at, newer.seq) > (old.at, old.seq))
       ORDER BY at LIMIT ${TRIMMED_AT_ONCE}) RETURNING at`,
  );
  return {
    async append(rows) {
      await db.write(() => {
        for (const { prefix, at, address, status, code, rows: count, query } of rows.map(storedRequest))
          insert.run(prefix, at, address, status, code, count, query);
      });
    },
    async *requestsOf(prefix, { sinceMs, untilMs }) {
      let place = [untilMs + 1, 0];
      for (;;) {
        const found = db.read(() => page.all(prefix, sinceMs, ...place)) as unknown as (StoredRequest & {
          readonly seq: number;
        })[];
        for (const row of found) yield requestOf(row);
        const end = found.at(-1);
        if (end === undefined) return;
        place = [end.at, end.seq];
      }
    },
    async lastUses(prefixes) {
      db.assertOpen();
      return new Map(
        prefixes.flatMap((prefix) => {
          const found = last.get(prefix) as unknown as { at: number; address: string | null } | undefined;
          return found
            ? [[prefix, { atMs: found.at, address: found.address } satisfies LastUse] as const]
            : [];
        }),
      );
    },
    async trim(beforeMs) {
      for (let removed = 0, fromMs = Number.MIN_SAFE_INTEGER; ; await nextTurn()) {
        const gone = await db.write(() => trim.all(fromMs, beforeMs) as unknown as { readonly at: number }[]);
        removed += gone.length;
        if (gone.length < TRIMMED_AT_ONCE) return removed;
        fromMs = gone.reduce((latest, { at }) => Math.max(latest, at), fromMs); // the kept ones before are not read again
      }
    },
    async close() {
      db.close();
    },
  };
}
