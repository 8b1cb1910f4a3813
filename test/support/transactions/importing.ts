import {
  type ImportCounts,
  type ImportOptions,
  importTransactions,
} from '../../../src/operator/import/import-transactions.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { type EventLine, linesOf } from './e2e-samples.ts';

export type ImportStore = ImportOptions['store'];
export const IMPORT_AUTHOR = { actor: 'ada', command: 'fuel transaction import' };

export async function* inChunks(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

/** Imports into an embedded store of the test's own. */
export function startImports() {
  const { store, clock, append } = openPushStores();
  const run = async (events: readonly EventLine[] | string, options: Partial<ImportOptions> = {}) => {
    const refused: [lineNumber: number, reason: string][] = [];
    const progress: ImportCounts[] = [];
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
  return { store, clock, append, run, typesOf };
}
