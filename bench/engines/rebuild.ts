import { EventStoreDBClient, streamNameFilter } from '@eventstore/db-client';
import { type Collection, type Document, type IndexDescription, MongoClient } from 'mongodb';
import { systemClock } from '../../src/base/clock.ts';
import { TRANSACTION_STREAMS } from '../../src/domain/transaction-events.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import type { Position } from '../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { type EngineEnv, freshId, type Verdict, withEngines } from '../support/engines.ts';
import { freshRecordings, linesOf } from '../support/fresh-lines.ts';
import { importSample } from '../support/import-sample.ts';
import { print, reportRatio, runPairs } from '../support/pairs.ts';
import { projectAll } from '../support/project-all.ts';

const LINES = 40_000;
const BATCH_EVENTS = 1_000;
/** The window of `src/engines/eventstoredb/driver/events.ts`. */
const SEARCH_WINDOW = 2_000;
const LOOK_EVERY_MS = 20;
const PAIRS = 5;

/** The work of both sides: events of this run alone, however many others the node has. */
interface Task {
  readonly engines: Engines;
  readonly after: Position;
}

/** Measures building the view in MongoDB from the log in EventStoreDB, against a bare loop with the plain drivers. */
export async function run(): Promise<Verdict> {
  return withEngines(async (env) => {
    const config = loadConfig({ ...env }, 'command');
    const engines = await openEngines(config, systemClock);
    const events = EventStoreDBClient.connectionString(env.EVENTSTORE_URL);
    const mongo = new MongoClient(env.MONGODB_URL, { writeConcern: { w: 'majority' } });
    try {
      const task = { engines, after: await recordSample(engines) };
      await rebuild(task);
      const bare = await bareTask({ mongo, env, events, after: task.after });
      print(`  ${LINES.toLocaleString('en')} events`);
      const pairs = await runPairs({
        pairs: PAIRS,
        baseline: () => rebuildBare(bare),
        ours: () => rebuild(task),
      });
      const target = { ratio: 0.95, is: 'at least' } as const;
      return reportRatio({ what: 'rebuild in MongoDB', unit: 'events/s', pairs, target });
    } finally {
      await events.dispose();
      await mongo.close();
      await engines.close();
    }
  });
}

/** Records the sample. Returns where the log ended before. */
async function recordSample(engines: Engines): Promise<Position> {
  const store = engines.store();
  await storeIdentity(store, systemClock);
  const after = await store.head();
  const recordings = freshRecordings(LINES, freshId());
  await importSample({ store, input: linesOf(recordings), lines: LINES });
  return after;
}

async function rebuild({ engines, after }: Task): Promise<number> {
  const store = engines.store();
  const view = engines.view();
  const head = await store.head();
  const startedAtMs = performance.now();
  const { generation } = await view.reset(await storeIdentity(store, systemClock), head);
  await view.apply([], { generation, position: after });
  await projectAll({ store, view, coordination: engines.coordination(), lookEveryMs: LOOK_EVERY_MS });
  const rate = perSecond(startedAtMs);
  if ((await view.parked()).length > 0) throw new Error('the rebuild set events aside');
  return rate;
}

interface BareTask {
  readonly events: EventStoreDBClient;
  readonly after: Position;
  readonly into: Collection;
  readonly rows: readonly Document[];
  readonly indexes: IndexDescription[];
}

/** Makes the task of the bare loop, with the rows and indexes that the service has made. */
async function bareTask(options: {
  readonly mongo: MongoClient;
  readonly env: EngineEnv;
  readonly events: EventStoreDBClient;
  readonly after: Position;
}): Promise<BareTask> {
  const { mongo, env, events, after } = options;
  const db = mongo.db(env.MONGODB_DATABASE);
  const [made] = await db.listCollections({ name: /^transactions_\d+$/ }).toArray();
  if (made === undefined) throw new Error('the service has made no rows');
  const rows = await db.collection(made.name).find().toArray();
  if (rows.length !== LINES) throw new Error(`the view has ${rows.length} rows of ${LINES}`);
  const all = (await db.collection(made.name).indexes()) as IndexDescription[];
  const indexes = all.filter(({ name }) => name !== '_id_').map(({ v: _, ...index }: Document) => index);
  return { events, after, into: db.collection('bare'), rows, indexes: indexes as IndexDescription[] };
}

async function rebuildBare({ events, after, into, rows, indexes }: BareTask): Promise<number> {
  await into.drop();
  const startedAtMs = performance.now();
  await into.createIndexes(indexes);
  const filter = streamNameFilter({ prefixes: [TRANSACTION_STREAMS], maxSearchWindow: SEARCH_WINDOW });
  const fromPosition = { commit: BigInt(after), prepare: BigInt(after) };
  const subscription = events.subscribeToAll({ fromPosition, filter });
  let read = 0;
  let batch: Document[] = [];
  for await (const { event } of subscription) {
    const row = rows[read];
    if (event === undefined || row === undefined) continue;
    read++;
    batch.push(row);
    if (batch.length < BATCH_EVENTS && read < rows.length) continue;
    await into.insertMany(batch, { ordered: false });
    batch = [];
    if (read === rows.length) break;
  }
  return perSecond(startedAtMs);
}

function perSecond(startedAtMs: number): number {
  return (LINES * 1_000) / (performance.now() - startedAtMs);
}
