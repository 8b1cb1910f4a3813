import { randomUUID } from 'node:crypto';
import { Binary, type Collection, type Db } from 'mongodb';
import type { MongoConnection } from '../../../mongodb/connection.ts';
import {
  type CollectionsPlan,
  isDuplicateKey,
  PreparedCollections,
} from '../../../mongodb/prepared-collections.ts';
import { type Chunk, cutIntoChunks, joinChunks, type Seal, Sealing, type SealKeys } from './chunks.ts';
import type { DirectorySnapshots, SnapshotHeader } from './snapshots.ts';

/** Of one operation, which writes or reads a few chunks. */
const ANSWER_MS = 10_000;
const CHUNKS_A_READ = 16;
/** Chunks of a process that was killed while it saved are removed after this. */
const ORPHANED_AFTER_MS = 3_600_000;
const THE_ONE = 'directory';

export const PLAN: CollectionsPlan = {
  name: 'directory-snapshots',
  version: 1,
  collections: {
    directory_snapshots: [],
    directory_snapshot_parts: [{ key: { generation: 1, number: 1 }, unique: true }],
  },
};

interface HeaderDocument extends Seal {
  readonly _id: string;
  readonly version: number;
  readonly store_id: string;
  readonly position: number;
  readonly generation: string;
  /** Its chunks are kept too: a process may have begun to read them before it was replaced. */
  readonly previous: string | null;
}

interface ChunkDocument {
  readonly generation: string;
  readonly number: number;
  readonly ends_part: boolean;
  readonly bytes: Binary;
  readonly created_at: Date;
}

/**
 * The snapshot that all machines on one MongoDB share. `close` leaves the connection to its owner. GridFS would not be
 * less: it neither replaces a file atomically nor notices changed bytes.
 */
export function openMongoDirectorySnapshots(options: {
  readonly connection: MongoConnection;
  readonly keys: SealKeys;
}): DirectorySnapshots {
  const collections = new PreparedCollections(options.connection, PLAN);
  const use = <T>(work: (db: Db) => Promise<T>): Promise<T> => collections.use(ANSWER_MS, work);

  async function* chunksOf({ generation, chunks }: HeaderDocument): AsyncGenerator<Chunk> {
    for (let number = 0; number < chunks; number += CHUNKS_A_READ) {
      const next = { generation, number: { $gte: number, $lt: number + CHUNKS_A_READ } };
      const found = await use((db) => chunksIn(db).find(next).sort({ number: 1 }).toArray());
      for (const { bytes, ends_part } of found) yield { bytes: bytes.buffer, endsPart: ends_part };
    }
  }

  async function write(generation: string, sealing: Sealing, parts: Iterable<Uint8Array>): Promise<Seal> {
    let number = 0;
    for (const chunk of cutIntoChunks(parts)) {
      sealing.add(chunk);
      const bytes = new Binary(chunk.bytes);
      const document = { generation, number: number++, ends_part: chunk.endsPart, bytes };
      await use((db) => chunksIn(db).insertOne({ ...document, created_at: new Date() }));
    }
    return sealing.seal();
  }

  return {
    async load() {
      const found = await use(current);
      if (found === null) return undefined;
      const header = { version: found.version, storeId: found.store_id, position: found.position };
      return { header, parts: joinChunks(chunksOf(found), { ...found, header }, options.keys) };
    },
    async save(header, parts) {
      const before = await use(current);
      const generation = randomUUID();
      try {
        const seal = await write(generation, new Sealing(options.keys.current(), header), parts);
        await use((db) => replace(db, before, { ...plain(header), ...seal, generation }));
      } catch (error) {
        await use((db) => chunksIn(db).deleteMany({ generation })).catch(() => undefined); // otherwise removed later as an orphan
        throw error;
      }
      await use((db) => removeOld(db, generation, before?.previous ?? null));
    },
    async close() {
      collections.close();
    },
  };
}

const chunksIn = (db: Db): Collection<ChunkDocument> => db.collection('directory_snapshot_parts');
const headersIn = (db: Db): Collection<HeaderDocument> => db.collection('directory_snapshots');
const current = (db: Db): Promise<HeaderDocument | null> => headersIn(db).findOne({ _id: THE_ONE });

function plain({ version, storeId, position }: SnapshotHeader) {
  return { version, store_id: storeId, position };
}

/** Of snapshots that were saved at the same time the one with the later position stays. */
async function replace(
  db: Db,
  before: HeaderDocument | null,
  after: Omit<HeaderDocument, '_id' | 'previous'>,
): Promise<void> {
  const mayGo = [
    { position: { $lte: after.position } },
    ...(before ? [{ generation: before.generation }] : []),
  ];
  const update = [{ $set: { ...after, store_id: { $literal: after.store_id }, previous: '$generation' } }];
  const put = () => headersIn(db).updateOne({ _id: THE_ONE, $or: mayGo }, update);
  if ((await put()).matchedCount === 1) return;
  try {
    await headersIn(db).insertOne({ _id: THE_ONE, ...after, previous: null });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    await put(); // the one that was just inserted may be earlier
  }
}

async function removeOld(db: Db, saved: string, beforeLast: string | null): Promise<void> {
  const now = await current(db);
  const isGeneration = (name: string | null | undefined): name is string => typeof name === 'string';
  const kept = [now?.generation, now?.previous].filter(isGeneration);
  const gone = [saved, beforeLast].filter(isGeneration).filter((generation) => !kept.includes(generation));
  await chunksIn(db).deleteMany({ generation: { $in: gone } });
  const isOld = { $expr: { $lt: ['$created_at', { $subtract: ['$$NOW', ORPHANED_AFTER_MS] }] } };
  await chunksIn(db).deleteMany({ generation: { $nin: kept }, ...isOld });
}
