import { generateTransactions } from '../../src/customers/sample/generator.ts';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';

export const ACCOUNTS = [7, 8, 9, 10] as const;
export const END_MS = Date.parse('2026-09-30T00:00:00Z');
export const DAYS = 60;

export interface SampleOptions {
  /** The number of lines, including withdrawals. */
  readonly lines: number;
  /** Puts both photos on every record, so that each has two URLs to sign. */
  readonly withPhotos?: boolean;
}

/** Yields seeded events of four accounts over 60 days. */
export function* sampleEvents({ lines, withPhotos = false }: SampleOptions): Generator<TransactionEvent> {
  let made = 0;
  const options = { seed: 1, count: lines, days: DAYS, endMs: END_MS, accountIds: ACCOUNTS };
  for (const event of generateTransactions(options)) {
    if (made++ === lines) return;
    yield withPhotos ? photographed(event) : event;
  }
}

/** Yields the same as the bytes of a file of JSON lines, in chunks like those of a file. */
export async function* sampleFile(options: SampleOptions): AsyncGenerator<Buffer> {
  const chunkLines = 200;
  let chunk: string[] = [];
  for (const event of sampleEvents(options)) {
    chunk.push(`${JSON.stringify(event)}\n`);
    if (chunk.length < chunkLines) continue;
    yield Buffer.from(chunk.join(''));
    chunk = [];
  }
  yield Buffer.from(chunk.join(''));
}

function photographed(event: TransactionEvent): TransactionEvent {
  if (event.type !== 'TransactionConfirmed' && event.type !== 'ExternalTransactionRecorded') return event;
  const id = event.data.transaction_id;
  const images = { pump: `photos/${id}/pump.jpg`, odometer: `photos/${id}/odometer.jpg` };
  return { ...event, data: { ...event.data, images } } as TransactionEvent;
}
