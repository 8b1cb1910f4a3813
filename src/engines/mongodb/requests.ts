import type { Collection, Db, ObjectId } from 'mongodb';
import type { RequestJournal } from '../../pull/request-journal.ts';
import { requestOf, type StoredRequest, storedRequest } from '../stored/requests.ts';
import type { MongoConnection } from './driver/connection.ts';
import { type CollectionsPlan, PreparedCollections } from './driver/prepared-collections.ts';

const WITHIN_MS = 10_000;
const LONG_MS = 600_000;
const PAGE = 500;

export const PLAN: CollectionsPlan = {
  name: 'requests',
  version: 1,
  collections: { requests: [{ key: { prefix: 1, at: -1, _id: -1 } }, { key: { at: 1 } }] },
};

interface RequestDocument extends StoredRequest {
  readonly _id: ObjectId;
}

/** What keys asked for, for all processes. A batch that is lost with a failover is lost: it holds nothing but uses. */
export function openMongoRequests({ connection }: { readonly connection: MongoConnection }): RequestJournal {
  const collections = new PreparedCollections(connection, PLAN);
  const requestsIn = (db: Db): Collection<RequestDocument> => db.collection('requests');
  return {
    async append(rows) {
      const documents = rows.map(storedRequest);
      await collections.use(WITHIN_MS, (db) =>
        db
          .collection<StoredRequest>('requests', { writeConcern: { w: 1 } })
          .insertMany(documents, { ordered: false }),
      );
    },
    async *requestsOf(prefix, { sinceMs, untilMs }) {
      let last: RequestDocument | undefined;
      do {
        const range = { $gte: sinceMs, $lte: last?.at ?? untilMs };
        const before = last && { $or: [{ at: { $lt: last.at } }, { at: last.at, _id: { $lt: last._id } }] };
        const page: RequestDocument[] = await collections.use(WITHIN_MS, (db) =>
          requestsIn(db)
            .find({ prefix, at: range, ...before })
            .sort({ at: -1, _id: -1 })
            .limit(PAGE)
            .toArray(),
        );
        for (const row of page) yield requestOf(row);
        last = page.at(-1);
      } while (last !== undefined);
    },
    async lastUses(prefixes) {
      const found = await collections.use(WITHIN_MS, (db) => newestOf(requestsIn(db), prefixes));
      return new Map(found.map(({ _id, at, address }) => [_id, { atMs: at, address }]));
    },
    trim: (beforeMs) =>
      collections.use(LONG_MS, async (db) => {
        const requests = requestsIn(db);
        let removed = 0;
        const old = requests.find({ at: { $lt: beforeMs } }, { projection: { prefix: 1 } }).sort({ at: 1 });
        for (let batch = await nextOf(old); batch.length > 0; batch = await nextOf(old)) {
          const newest = await newestOf(requests, [...new Set(batch.map(({ prefix }) => prefix))]);
          const kept = new Set(newest.map(({ last }) => last.toHexString()));
          const ids = batch.map(({ _id }) => _id).filter((id) => !kept.has(id.toHexString()));
          removed += (await requests.deleteMany({ _id: { $in: ids } })).deletedCount;
        }
        return removed;
      }),
    async close() {
      collections.close();
    },
  };
}

interface Newest {
  /** The prefix. */
  readonly _id: string;
  readonly last: ObjectId;
  readonly at: number;
  readonly address: string | null;
}

/** By the index alone: one entry for each prefix. */
function newestOf(requests: Collection<RequestDocument>, prefixes: readonly string[]): Promise<Newest[]> {
  return requests
    .aggregate<Newest>([
      { $match: { prefix: { $in: [...prefixes] } } },
      { $sort: { prefix: 1, at: -1, _id: -1 } },
      {
        $group: {
          _id: '$prefix',
          last: { $first: '$_id' },
          at: { $first: '$at' },
          address: { $first: '$address' },
        },
      },
    ])
    .toArray();
}

async function nextOf(cursor: { next(): Promise<RequestDocument | null> }): Promise<RequestDocument[]> {
  const batch: RequestDocument[] = [];
  while (batch.length < PAGE) {
    const next = await cursor.next();
    if (next === null) break;
    batch.push(next);
  }
  return batch;
}
