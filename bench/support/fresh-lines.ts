import { generateTransactions } from '../../src/customers/sample/generator.ts';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import { ACCOUNTS, DAYS, END_MS } from './sample-events.ts';

/** The event that records a transaction. Each has its own stream. */
export type Recording = Extract<
  TransactionEvent,
  { readonly type: 'TransactionConfirmed' | 'ExternalTransactionRecorded' }
>;

/** Makes seeded recordings for the sample's accounts with new ids, which are in no store yet. */
export function freshRecordings(count: number, firstId: number): Recording[] {
  const recordings: Recording[] = [];
  const options = { seed: 1, count: 2 * count, days: DAYS, endMs: END_MS, accountIds: ACCOUNTS };
  for (const event of generateTransactions(options)) {
    if (event.type !== 'TransactionConfirmed' && event.type !== 'ExternalTransactionRecorded') continue;
    const data = {
      ...event.data,
      transaction_id: firstId + recordings.length,
      correction_reference_id: null,
    };
    recordings.push({ ...event, data } as Recording);
    if (recordings.length === count) break;
  }
  return recordings;
}

/** Yields the bytes of a file of JSON lines, in chunks like those of a file. */
export async function* linesOf(events: readonly TransactionEvent[]): AsyncGenerator<Buffer> {
  const chunkLines = 200;
  for (let from = 0; from < events.length; from += chunkLines) {
    const lines = events.slice(from, from + chunkLines).map((event) => `${JSON.stringify(event)}\n`);
    yield Buffer.from(lines.join(''));
  }
}
