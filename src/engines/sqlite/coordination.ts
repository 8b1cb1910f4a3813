import type { Clock } from '../../base/clock.ts';
import type { Coordination, Lease, LiveProcess } from '../../base/coordination/coordination.ts';
import { mayBeAlive } from '../stored/may-be-alive.ts';
import { Database, type OpenOptions } from './driver/database.ts';

export const MIGRATIONS = [
  `CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
   CREATE TABLE processes (
     id TEXT PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, roles TEXT NOT NULL,
     started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, directory_position INTEGER
   ) STRICT;`,
];

/** Leases and processes of one machine, in a separate file. */
export function openSqliteCoordination(options: {
  readonly path: string;
  readonly clock: Clock;
  readonly onPutAside?: OpenOptions['onPutAside'];
}): Coordination {
  const { clock, path, onPutAside } = options;
  const db = new Database(path, { migrations: MIGRATIONS, durability: 'normal', onPutAside });
  const take = db.prepare(
    `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
     WHERE leases.holder = excluded.holder OR leases.expires_at <= ?`,
  );
  const drop = db.prepare('DELETE FROM leases WHERE name = ? AND holder = ?');
  const current = db.prepare('SELECT holder, expires_at FROM leases WHERE name = ? AND expires_at > ?');
  const report = db.prepare('INSERT OR REPLACE INTO processes VALUES (?, ?, ?, ?, ?, ?, ?)');
  const forget = db.prepare('DELETE FROM processes WHERE id = ?');
  const seen = db.prepare('SELECT * FROM processes WHERE seen_at > ? ORDER BY started_at, id');
  return {
    async acquire(lease, holder, ttlMs) {
      const now = clock.now();
      return db.write(() => take.run(lease, holder, now + ttlMs, now).changes === 1);
    },
    async release(lease, holder) {
      await db.write(() => drop.run(lease, holder));
    },
    async holder(lease): Promise<Lease | undefined> {
      db.assertOpen();
      const row = current.get(lease, clock.now());
      return row && { holder: row.holder as string, expiresAtMs: row.expires_at as number };
    },
    async report(p) {
      const roles = JSON.stringify(p.roles);
      await db.write(() =>
        report.run(p.id, p.pid, p.host, roles, p.startedAtMs, p.seenAtMs, p.directoryPosition),
      );
    },
    async leave(processId) {
      await db.write(() => forget.run(processId));
    },
    async live(maxAgeMs) {
      db.assertOpen();
      return seen
        .all(clock.now() - maxAgeMs)
        .map(toProcess)
        .filter(mayBeAlive);
    },
    async close() {
      db.close();
    },
  };
}

function toProcess(row: Readonly<Record<string, unknown>>): LiveProcess {
  return {
    id: row.id as string,
    pid: row.pid as number,
    host: row.host as string,
    roles: JSON.parse(row.roles as string) as string[],
    startedAtMs: row.started_at as number,
    seenAtMs: row.seen_at as number,
    directoryPosition: row.directory_position as number | null,
  };
}
