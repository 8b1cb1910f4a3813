import { availableParallelism } from 'node:os';
import { record } from '../../domain/decision.ts';
import {
  decideTransaction,
  evolveTransaction,
  NO_TRANSACTION,
  type TransactionState,
} from '../../domain/transaction.ts';
import {
  isRecordingType,
  type TransactionEvent,
  type TransactionEventType,
} from '../../domain/transaction-events.ts';
import { decode } from '../../event-store/codec.ts';
import type { JsonText } from '../../event-store/new-event.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { lineBlocks, type NumberedLine, parseLines } from '../lines/lines.ts';
import {
  type LineCounts,
  type LineDecider,
  type RecordLinesOptions,
  recordLines,
} from '../lines/record-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';
import { parsedInThread } from './parsing-thread.ts';

export type ImportCounts = LineCounts;

export interface ImportOptions
  extends Omit<RecordLinesOptions<ImportedEvent, ImportedEvent>, 'lines' | 'batchCharacters' | 'decider'> {
  readonly input: AsyncIterable<Buffer>;
}

const BATCH_CHARACTERS = 4 * 1024 * 1024;

/**
 * Records transaction events from lines of JSON, in batches. Each line is recorded, unchanged (the same was recorded
 * before) or refused with a reason, independently of the others. A repeated or interrupted import records only what is
 * missing.
 */
export function importTransactions(options: ImportOptions): Promise<ImportCounts> {
  return recordLines({
    ...options,
    lines: parsedImport(options.input),
    batchCharacters: BATCH_CHARACTERS,
    decider: (_stream, history) => deciderAfter(history),
    beginsStream: ({ type }) => isRecordingType(type),
  });
}

const UNREADABLE = {
  kind: 'refused',
  reason: 'its stream holds an event that this version can not read',
} as const;

function deciderAfter(history: readonly RecordedEvent[]): LineDecider<ImportedEvent, ImportedEvent> {
  let state = stateOf(history);
  return (imported) => {
    if (state === 'unreadable') return UNREADABLE;
    const event = new LazyEvent(imported) as TransactionEvent;
    const decision = decideTransaction(event, state);
    if (decision.kind !== 'events') return decision;
    state = evolveTransaction(state, event);
    return record(imported);
  };
}

/** Of an imported event, whose data is parsed where it is looked at: it is not where the event begins its stream. */
class LazyEvent {
  readonly type: TransactionEventType;
  readonly #data: JsonText;

  constructor({ type, data }: ImportedEvent) {
    this.type = type;
    this.#data = data;
  }

  get data(): unknown {
    return this.#data.value;
  }
}

export function stateOf(history: readonly RecordedEvent[]): TransactionState | 'unreadable' {
  let state: TransactionState = NO_TRANSACTION;
  for (const event of history) {
    const decoded = decode(event);
    if (!decoded.ok) return 'unreadable';
    state = evolveTransaction(state, { type: decoded.type, data: decoded.data } as TransactionEvent);
  }
  return state;
}

/** To parse less takes no longer than to start a thread. */
const MIN_THREAD_BYTES = 1024 * 1024;

/**
 * The lines of an import. Those behind the first mebibyte are parsed in a thread, where the machine has a core for it.
 */
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
