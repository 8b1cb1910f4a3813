import type { Clock } from '../../../src/base/clock.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { type RecordedImport, recordImport } from '../../../src/operator/import/import-log.ts';
import { type ImportOptions, importTransactions } from '../../../src/operator/import/import-transactions.ts';
import type { LineCounts } from '../../../src/operator/lines/record-lines.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { replacing } from '../interposed.ts';
import { type EventLine, linesOf } from './e2e-samples.ts';

export type ImportStore = ImportOptions['store'];
export const IMPORT_AUTHOR = { actor: 'ada', command: 'fuel transaction import' };

export async function* inChunks(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

/** Imports into a separate embedded store. */
export function startImports() {
  const { store, clock, append, openQueue } = openPushStores();
  const run = async (events: readonly EventLine[] | string, options: Partial<ImportOptions> = {}) => {
    const refused: [lineNumber: number, reason: string][] = [];
    const progress: LineCounts[] = [];
    const counts = await importTransactions({
      store,
      input: inChunks([typeof events === 'string' ? events : linesOf(events)]),
      author: IMPORT_AUTHOR,
      clock,
      onRefused: (lineNumber, reason) => void refused.push([lineNumber, reason]),
      onProgress: (so_far) => void progress.push(so_far),
      signal: new AbortController().signal,
      ...options,
    });
    return { counts, refused, progress };
  };
  const typesOf = async (id: number) => (await store.readStream(`transaction-${id}`)).map(({ type }) => type);
  return { store, clock, append, openQueue, run, typesOf };
}

/** Imports these lines and records the import. */
export function importAll({
  store,
  clock,
  lines,
  source = 'lines.jsonl',
}: {
  readonly store: ImportStore;
  readonly clock: Clock;
  readonly lines: string;
  readonly source?: string;
}): Promise<RecordedImport> {
  return recordImport({
    store,
    clock,
    source,
    author: IMPORT_AUTHOR,
    input: inChunks([lines]),
    onRefused: () => undefined,
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
}

/** Returns the store, but it fails after this many appends. */
export function endingAfter(appends: number, store: EventStore): EventStore {
  let left = appends;
  return replacing(store, {
    async append(some) {
      if (left-- <= 0) throw new Error('ended');
      return store.append(some);
    },
  });
}
