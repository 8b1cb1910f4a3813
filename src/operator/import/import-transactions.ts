import { availableParallelism } from 'node:os';
import { record } from '../../domain/decision.ts';
import { decideTransaction, evolveTransaction, type TransactionState } from '../../domain/transaction.ts';
import { isRecordingType, type TransactionEvent } from '../../domain/transaction-events.ts';
import { decode } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { projectEvent, TransactionFold } from '../../records/project-event.ts';
import { lineBlocks, type NumberedLine, parseLines } from '../lines/lines.ts';
import {
  type LineCounts,
  type LineDecider,
  type RecordLinesOptions,
  recordLines,
} from '../lines/record-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';
import { parsedInThread } from './parsing-thread.ts';

export interface ImportOptions
  extends Omit<
    RecordLinesOptions<ImportedEvent, ImportedEvent>,
    'lines' | 'batchCharacters' | 'decider' | 'beginsStream'
  > {
  readonly input: AsyncIterable<Buffer>;
}

const BATCH_CHARACTERS = 4 * 1024 * 1024;
/** Parsing less than this takes no longer than starting a thread. */
const MIN_THREAD_BYTES = 1024 * 1024;

/**
 * Records transaction events from lines of JSON, in batches. Each line is recorded, unchanged (recorded before with the same
 * content) or refused with a reason, independently of the others. A repeated or interrupted import records only what is
 * missing.
 */
export function importTransactions(options: ImportOptions): Promise<LineCounts> {
  return recordLines({
    ...options,
    lines: parsedImport(options.input),
    batchCharacters: BATCH_CHARACTERS,
    decider: deciderAfter,
    beginsStream: ({ type }) => isRecordingType(type),
  });
}

export const UNREADABLE = "its stream holds an event that this version can't read";

function deciderAfter(history: readonly RecordedEvent[]): LineDecider<ImportedEvent, ImportedEvent> {
  let state = transactionAfter(history);
  return (imported) => {
    if (state === 'unreadable') return { kind: 'refused', reason: UNREADABLE };
    const { type, data } = imported;
    // An event that begins its stream is decided without its data, so this parses the data only if it is needed.
    const event = {
      type,
      get data() {
        return data.value;
      },
    } as TransactionEvent;
    const decision = decideTransaction(event, state);
    if (decision.kind !== 'events') return decision;
    state = evolveTransaction(state, event);
    return record(imported);
  };
}

/** Folds a stream as the view does: an event that was parked changes nothing. An event that only a newer version can read permits no decision. */
export function transactionAfter(history: readonly RecordedEvent[]): TransactionState | 'unreadable' {
  const fold = new TransactionFold();
  for (const event of history) {
    const { kind } = fold.apply(projectEvent(event));
    if (kind === 'parked' && !decode(event).ok) return 'unreadable';
  }
  return fold.state;
}

/** Yields the lines of an import. After the first mebibyte they are parsed in a thread, if the machine has a core for it. */
export async function* parsedImport(
  input: AsyncIterable<Buffer>,
): AsyncGenerator<NumberedLine<ImportedEvent>[]> {
  const blocks = lineBlocks(input);
  try {
    for (let bytes = 0; bytes < MIN_THREAD_BYTES; ) {
      const { done, value } = await blocks.next();
      if (done === true) return;
      yield parseLines(value, parseLine);
      bytes += value.bytes.length;
    }
    if (availableParallelism() > 1) yield* parsedInThread(blocks);
    else for await (const block of blocks) yield parseLines(block, parseLine);
  } finally {
    await blocks.return(undefined);
  }
}
