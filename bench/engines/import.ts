import {
  type AppendExpectedRevision,
  EventStoreDBClient,
  jsonEvent,
  NO_STREAM,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { transactionStream } from '../../src/domain/transaction-events.ts';
import { EventStoreDb } from '../../src/engines/eventstoredb/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { freshId, type Verdict, withEngines } from '../support/engines.ts';
import { freshRecordings, linesOf, type Recording } from '../support/fresh-lines.ts';
import { importSample } from '../support/import-sample.ts';
import { print, reportRatio, runPairs } from '../support/pairs.ts';

const LINES = 20_000;
/** The number of appends in flight, as in `src/engines/eventstoredb/log/append.ts`. */
const IN_FLIGHT = 128;
const AUTHOR = { actor: 'bench', command: 'fuel transaction import' };

/** Measures the import into EventStoreDB, against a bare loop that reads and appends with the plain client. */
export async function run(): Promise<Verdict> {
  return withEngines(async ({ EVENTSTORE_URL: url }) => {
    const store = new EventStoreDb({ url, clock: systemClock, log: silentLog });
    const client = EventStoreDBClient.connectionString(url);
    print(`  ${LINES.toLocaleString('en')} lines a run, ${IN_FLIGHT} appends in flight`);
    try {
      const pairs = await runPairs({
        baseline: () => rateOf(freshRecordings(LINES, freshId()), (events) => appendBare(client, events)),
        ours: () =>
          rateOf(freshRecordings(LINES, freshId()), (events) =>
            importSample({ store, input: linesOf(events), lines: events.length }),
          ),
      });
      const target = { ratio: 1.8, is: 'at least' } as const;
      return reportRatio({ what: 'import into EventStoreDB', unit: 'events/s', pairs, target });
    } finally {
      await client.dispose();
      await store.close();
    }
  });
}

async function rateOf(
  events: readonly Recording[],
  work: (events: readonly Recording[]) => Promise<void>,
): Promise<number> {
  const startedAtMs = performance.now();
  await work(events);
  return (events.length * 1_000) / (performance.now() - startedAtMs);
}

async function appendBare(client: EventStoreDBClient, events: readonly Recording[]): Promise<void> {
  const rest = events.values();
  const worker = async (): Promise<void> => {
    for (const event of rest) {
      const stream = transactionStream(event.data.transaction_id);
      const expectedRevision = await lastRevision(client, stream);
      const { id, type, data, metadata } = newEvent(event, AUTHOR, Date.now());
      const proposed = jsonEvent({
        id,
        type,
        data: data as Recording['data'],
        metadata: metadata as unknown as Record<string, unknown>,
      });
      await client.appendToStream(stream, proposed, { expectedRevision });
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

async function lastRevision(client: EventStoreDBClient, stream: string): Promise<AppendExpectedRevision> {
  let last: AppendExpectedRevision = NO_STREAM;
  try {
    for await (const { event } of client.readStream(stream)) last = event?.revision ?? last;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return last;
}
