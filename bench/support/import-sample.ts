import { systemClock } from '../../src/base/clock.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { importTransactions } from '../../src/operator/import/import-transactions.ts';
import type { LineCounts } from '../../src/operator/lines/record-lines.ts';

/** Runs the service's own import, which must record every line, or the given number of lines. */
export async function importSample(options: {
  readonly store: EventStore;
  readonly input: AsyncIterable<Buffer>;
  readonly lines: number;
  readonly recorded?: number;
  readonly onProgress?: (counts: LineCounts) => void;
}): Promise<void> {
  const counts = await importTransactions({
    store: options.store,
    input: options.input,
    author: { actor: 'bench', command: 'fuel transaction import' },
    clock: systemClock,
    onRefused: (lineNumber, reason) => {
      throw new Error(`line ${lineNumber} was refused: ${reason}`);
    },
    onProgress: options.onProgress ?? (() => undefined),
    signal: new AbortController().signal,
  });
  const { lines, recorded = lines } = options;
  if (counts.recorded !== recorded) throw new Error(`recorded ${counts.recorded} of ${lines}`);
}
