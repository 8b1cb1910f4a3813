import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Database, type OpenOptions } from '../../../sqlite/database.ts';
import { type Chunk, cutIntoChunks, joinChunks, type Seal, Sealing, type SealKeys } from './chunks.ts';
import type { DirectorySnapshots, SnapshotHeader, StoredSnapshot } from './snapshots.ts';

export const MIGRATIONS = [
  `CREATE TABLE snapshot (
     id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, store_id TEXT NOT NULL,
     position INTEGER NOT NULL, generation TEXT NOT NULL, previous TEXT, chunks INTEGER NOT NULL, sha256 TEXT NOT NULL
   ) STRICT;
   CREATE TABLE chunks (
     generation TEXT NOT NULL, number INTEGER NOT NULL, ends_part INTEGER NOT NULL, bytes BLOB NOT NULL,
     created_at INTEGER NOT NULL, PRIMARY KEY (generation, number)
   ) STRICT;`,
  'ALTER TABLE snapshot RENAME COLUMN sha256 TO seal;',
];
/** Chunks of a process that was killed while it saved are removed after this. */
const ORPHANED_AFTER_SECONDS = 3_600;

interface StoredHeader extends Seal {
  readonly header: SnapshotHeader;
  readonly generation: string;
  /** Its chunks are kept too: a process may have begun to read them before it was replaced. */
  readonly previous: string | null;
}

/**
 * The snapshot of one machine, in a separate file. Chunks are written one at a time, with the event loop free between:
 * one blob of hundreds of MiB would block it for seconds.
 */
export function openSqliteDirectorySnapshots(options: {
  readonly path: string;
  readonly keys: SealKeys;
  readonly onPutAside?: OpenOptions['onPutAside'];
}): DirectorySnapshots {
  const { path, keys, onPutAside } = options;
  const db = new Database(path, { migrations: MIGRATIONS, durability: 'normal', onPutAside });
  const select = db.prepare('SELECT * FROM snapshot');
  const put = db.prepare('INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?, ?, ?, ?)');
  const add = db.prepare('INSERT INTO chunks VALUES (?, ?, ?, ?, unixepoch())');
  const chunk = db.prepare('SELECT ends_part, bytes FROM chunks WHERE generation = ? AND number = ?');
  const drop = db.prepare(
    'DELETE FROM chunks WHERE generation = ?1 AND number IN (SELECT number FROM chunks WHERE generation = ?1 LIMIT 4)',
  );
  const orphans = db.prepare(
    'SELECT DISTINCT generation FROM chunks WHERE generation NOT IN (?, ?) AND created_at < unixepoch() - ?',
  );

  function current(): StoredHeader | undefined {
    db.assertOpen();
    const row = select.get();
    return row && toHeader(row);
  }

  async function* chunksOf({ generation, chunks }: StoredHeader): AsyncGenerator<Chunk> {
    for (let number = 0; number < chunks; number++) {
      await nextTurn();
      db.assertOpen();
      const row = chunk.get(generation, number);
      if (row === undefined) return;
      yield { bytes: row.bytes as Uint8Array, endsPart: row.ends_part === 1 };
    }
  }

  async function write(generation: string, sealing: Sealing, parts: Iterable<Uint8Array>): Promise<Seal> {
    let number = 0;
    for (const { bytes, endsPart } of cutIntoChunks(parts)) {
      sealing.add({ bytes, endsPart });
      await db.write(() => add.run(generation, number, endsPart ? 1 : 0, bytes));
      number++;
      await nextTurn();
    }
    return sealing.seal();
  }

  /** Of snapshots saved at the same time the one with the later position stays. Returns the generations to remove. */
  function replace(
    before: StoredHeader | undefined,
    header: SnapshotHeader,
    saved: Seal & { readonly generation: string },
  ): string[] {
    const now = current();
    const isAnother = now !== undefined && now.generation !== before?.generation;
    if (isAnother && now.header.position > header.position) return [saved.generation];
    const { version, storeId, position } = header;
    const previous = now?.generation ?? null;
    put.run(version, storeId, position, saved.generation, previous, saved.chunks, saved.seal);
    const old = orphans.all(saved.generation, previous ?? '', ORPHANED_AFTER_SECONDS);
    const left = old.map((row) => row.generation as string);
    return now?.previous == null ? left : [now.previous, ...left];
  }

  async function remove(generations: readonly string[]): Promise<void> {
    for (const generation of generations) {
      while ((await db.write(() => drop.run(generation).changes)) > 0) await nextTurn();
    }
  }

  return {
    async load(): Promise<StoredSnapshot | undefined> {
      const found = current();
      return found && { header: found.header, parts: joinChunks(chunksOf(found), found, keys) };
    },
    async save(header, parts) {
      const before = current();
      const generation = randomUUID();
      try {
        const seal = await write(generation, new Sealing(keys.current(), header), parts);
        await remove(await db.write(() => replace(before, header, { ...seal, generation })));
      } catch (error) {
        if (db.isOpen && current()?.generation !== generation) await remove([generation]);
        throw error;
      }
    },
    async close() {
      db.close();
    },
  };
}

function toHeader(row: Readonly<Record<string, unknown>>): StoredHeader {
  return {
    header: {
      version: row.version as number,
      storeId: row.store_id as string,
      position: row.position as number,
    },
    generation: row.generation as string,
    previous: row.previous as string | null,
    chunks: row.chunks as number,
    seal: row.seal as string,
  };
}
