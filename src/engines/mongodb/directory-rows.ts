import { Binary, type ClientSession, type Collection, type Db, type FindOptions } from 'mongodb';
import {
  type DirectoryRows,
  pageOf,
  type RowDigest,
  type RowsCheckpoint,
  type RowsPage,
} from '../../accounts/directory/rows/rows.ts';
import type { MongoConnection } from './driver/connection.ts';
import { type CollectionsPlan, PreparedCollections } from './driver/prepared-collections.ts';

/** Of one operation, which writes or reads some hundred rows. */
const ANSWER_MS = 10_000;
const ROWS_A_READ = 500;
const DIGESTS_A_READ = 5_000;
const THE_ONE = 'directory';
const NOTHING = -1;
const PLACE = { _id: 1, revision: 1, position: 1 };

export const PLAN: CollectionsPlan = {
  name: 'directory',
  version: 1,
  collections: {
    directory_checkpoint: [],
    directory: [
      { name: 'by_prefix', key: { prefixes: 1 } },
      { name: 'digests', key: { _id: 1, revision: 1, position: 1, digest: 1 } },
    ],
  },
};

interface RowDocument {
  /** The account's id. */
  readonly _id: number;
  readonly revision: number;
  readonly position: number;
  readonly digest: string;
  readonly packed: Binary;
  readonly prefixes: readonly string[];
}

type CheckpointDocument = RowsCheckpoint & { readonly _id: string };

const rowsIn = (db: Db): Collection<RowDocument> => db.collection('directory');
const checkpointIn = (db: Db): Collection<CheckpointDocument> => db.collection('directory_checkpoint');

/** The rows that all machines on one MongoDB share. `close` leaves the connection to its owner. */
export function openMongoDirectoryRows({ connection }: { connection: MongoConnection }): DirectoryRows {
  const collections = new PreparedCollections(connection, PLAN);
  const use = <T>(work: (db: Db) => Promise<T>): Promise<T> => collections.use(ANSWER_MS, work);

  const together = <T>(work: (db: Db, session: ClientSession) => Promise<T>): Promise<T> =>
    use((db) => connection.transaction((session) => work(db, session)));

  async function current(): Promise<RowsCheckpoint | undefined> {
    const found = await use((db) => checkpointIn(db).findOne({ _id: THE_ONE }, { projection: { _id: 0 } }));
    return found ?? undefined;
  }

  async function* inPages(options: FindOptions & { readonly limit: number }) {
    for (let last: number | undefined = NOTHING; last !== undefined; ) {
      const after = { _id: { $gt: last } };
      const read = (db: Db) =>
        rowsIn(db)
          .find(after, { ...options, sort: { _id: 1 } })
          .toArray();
      const found: RowDocument[] = await use(read);
      if (found.length > 0) yield found;
      last = found.at(-1)?._id;
    }
  }

  return {
    checkpoint: current,
    async *rows(): AsyncGenerator<RowsPage> {
      const found = inPages({ projection: { ...PLACE, packed: 1 }, limit: ROWS_A_READ });
      for await (const some of found) {
        yield pageOf(
          some.map(({ _id, packed, ...row }) => ({ accountId: _id, ...row, packed: packed.buffer })),
        );
      }
    },
    async *digests(): AsyncGenerator<RowDigest[]> {
      const projection = { ...PLACE, digest: 1 };
      const found = inPages({ projection, limit: DIGESTS_A_READ, hint: 'digests' });
      for await (const some of found) yield some.map(({ _id: accountId, ...row }) => ({ accountId, ...row }));
    },
    async owners(prefix) {
      const found = await use((db) =>
        rowsIn(db)
          .find({ prefixes: prefix }, { projection: { _id: 1 } })
          .toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    save: (rows, checkpoint, expected) =>
      together(async (db, session) => {
        const { matchedCount } = await checkpointIn(db).replaceOne(
          { _id: THE_ONE, seal: expected },
          checkpoint,
          { session },
        );
        if (matchedCount === 0) return false;
        const writes = rows.map(({ accountId, packed, ...rest }) => ({
          replaceOne: {
            filter: { _id: accountId },
            replacement: { ...rest, packed: new Binary(packed) },
            upsert: true,
          },
        }));
        if (writes.length > 0) await rowsIn(db).bulkWrite(writes, { session, ordered: false });
        return true;
      }),
    async clear(checkpoint) {
      const begin = (db: Db) => checkpointIn(db).replaceOne({ _id: THE_ONE }, checkpoint, { upsert: true });
      await use(begin);
      // Together with a look at the seal: a row that another process saves meanwhile stays.
      const remove = async (db: Db, session: ClientSession): Promise<number> => {
        const ours = await checkpointIn(db).findOne({ _id: THE_ONE, seal: checkpoint.seal }, { session });
        if (ours === null) return 0;
        const some = await rowsIn(db)
          .find({}, { projection: { _id: 1 }, session })
          .limit(ROWS_A_READ)
          .toArray();
        const ids = some.map(({ _id }) => _id);
        return (await rowsIn(db).deleteMany({ _id: { $in: ids } }, { session })).deletedCount;
      };
      while ((await together(remove)) > 0);
    },
    async close() {
      collections.close();
    },
  };
}
