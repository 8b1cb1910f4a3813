import type { Collection, Db } from 'mongodb';
import type { Coordination, LiveProcess } from '../../base/coordination/coordination.ts';
import { mayBeAlive } from '../stored/may-be-alive.ts';
import type { MongoConnection } from './driver/connection.ts';
import { type CollectionsPlan, PreparedCollections, retryUpsert } from './driver/prepared-collections.ts';

/** Leases last for seconds, so a later answer would be useless. */
const TIMEOUT_MS = 2_000;
/** For processes that died without `leave`. */
const EXPIRE_AFTER_SECONDS = 86_400;

export const PLAN: CollectionsPlan = {
  name: 'coordination',
  version: 1,
  collections: {
    leases: [],
    processes: [{ key: { seen_at: 1 }, expireAfterSeconds: EXPIRE_AFTER_SECONDS }],
  },
};

interface LeaseDocument {
  readonly _id: string;
  readonly holder: string;
  readonly expires_at: Date;
}

interface ProcessDocument {
  readonly _id: string;
  readonly pid: number;
  readonly host: string;
  readonly roles: readonly string[];
  readonly started_at: Date;
  readonly seen_at: Date;
  readonly directory_position: number | null;
}

/**
 * Leases and processes of all machines that share one MongoDB. Only the server's clock counts, also in `expiresAtMs`
 * and `seenAtMs`, since the machines' clocks may differ. A lease is granted once a majority has it, so that a failover
 * can't give it to a second holder. `close` leaves the connection open.
 */
export function openMongoCoordination(options: { readonly connection: MongoConnection }): Coordination {
  const collections = new PreparedCollections(options.connection, PLAN);
  const use = <T>(work: (db: Db) => Promise<T>): Promise<T> => collections.use(TIMEOUT_MS, work);
  return {
    acquire: (lease, holder, ttlMs) => use((db) => take(leasesOf(db), lease, { holder, ttlMs })),
    async release(lease, holder) {
      await use((db) => leasesOf(db).deleteOne({ _id: lease, holder }));
    },
    async holder(lease) {
      const isRunning = { $expr: { $gt: ['$expires_at', '$$NOW'] } };
      const found = await use((db) => leasesOf(db).findOne({ _id: lease, ...isRunning }));
      return found === null ? undefined : { holder: found.holder, expiresAtMs: found.expires_at.getTime() };
    },
    async report(reported) {
      await use((db) => record(processesOf(db), reported));
    },
    async leave(processId) {
      await use((db) => processesOf(db).deleteOne({ _id: processId }));
    },
    async live(maxAgeMs) {
      const isFresh = { $expr: { $gt: ['$seen_at', { $subtract: ['$$NOW', maxAgeMs] }] } };
      const oldestFirst = { started_at: 1, _id: 1 } as const;
      const found = await use((db) => processesOf(db).find(isFresh).sort(oldestFirst).toArray());
      return found.map(toProcess).filter(mayBeAlive);
    },
    async close() {
      collections.close();
    },
  };
}

function leasesOf(db: Db): Collection<LeaseDocument> {
  return db.collection('leases');
}

/** A report is repeated every two seconds, so it need not survive a failover. */
function processesOf(db: Db): Collection<ProcessDocument> {
  return db.collection('processes', { writeConcern: { w: 1 } });
}

/** A lease of another holder stays as it is, and nothing is written. */
async function take(
  leases: Collection<LeaseDocument>,
  lease: string,
  { holder, ttlMs }: { readonly holder: string; readonly ttlMs: number },
): Promise<boolean> {
  const mine = { $literal: holder };
  const isFree = { $or: [{ $eq: ['$holder', mine] }, { $lte: ['$expires_at', '$$NOW'] }] }; // absent is less
  const taken = await retryUpsert(() =>
    leases.findOneAndUpdate(
      { _id: lease },
      [
        { $set: { free: isFree } },
        {
          $set: {
            holder: { $cond: ['$free', mine, '$holder'] },
            expires_at: { $cond: ['$free', { $add: ['$$NOW', ttlMs] }, '$expires_at'] },
          },
        },
        { $unset: 'free' },
      ],
      { upsert: true, returnDocument: 'after' },
    ),
  );
  return taken?.holder === holder;
}

async function record(processes: Collection<ProcessDocument>, reported: LiveProcess): Promise<void> {
  const { id, pid, host, roles, startedAtMs, directoryPosition } = reported;
  const given = {
    pid,
    host,
    roles,
    started_at: new Date(startedAtMs),
    directory_position: directoryPosition,
  };
  await retryUpsert(() =>
    processes.updateOne(
      { _id: id },
      [{ $replaceWith: { $mergeObjects: [{ $literal: { _id: id, ...given } }, { seen_at: '$$NOW' }] } }],
      { upsert: true },
    ),
  );
}

function toProcess(found: ProcessDocument): LiveProcess {
  return {
    id: found._id,
    pid: found.pid,
    host: found.host,
    roles: found.roles,
    startedAtMs: found.started_at.getTime(),
    seenAtMs: found.seen_at.getTime(),
    directoryPosition: found.directory_position,
  };
}
