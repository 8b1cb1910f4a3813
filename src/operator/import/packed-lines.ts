import type { TransactionEventType } from '../../domain/transaction-events.ts';
import { JsonText } from '../../event-store/new-event.ts';
import type { NumberedLine } from '../lines/lines.ts';
import type { ImportedEvent } from './parse-line.ts';

/** Lines by column: what a thread hands to another is copied, and a row of five names costs more than its values. */
export interface PackedLines {
  readonly numbers: readonly number[];
  /** `null` where the line is refused. */
  readonly streams: readonly (string | null)[];
  readonly types: readonly (TransactionEventType | null)[];
  readonly accounts: readonly number[];
  readonly corporates: readonly (number | null)[];
  /** The data as JSON, or why the line is refused. */
  readonly texts: readonly string[];
}

export function packLines(lines: readonly NumberedLine<ImportedEvent>[]): PackedLines {
  return {
    numbers: lines.map(({ number }) => number),
    streams: lines.map((line) => (line.ok ? line.stream : null)),
    types: lines.map((line) => (line.ok ? line.content.type : null)),
    accounts: lines.map((line) => (line.ok ? line.content.accountId : 0)),
    corporates: lines.map((line) => (line.ok ? line.content.corporateId : null)),
    texts: lines.map((line) => (line.ok ? line.content.data.text : line.reason)),
  };
}

export function unpackLines(packed: PackedLines): NumberedLine<ImportedEvent>[] {
  const { numbers, streams, types, accounts, corporates, texts } = packed;
  return numbers.map((number, index) => {
    const text = texts[index] ?? '';
    const stream = streams[index] ?? null;
    const type = types[index] ?? null;
    if (stream === null || type === null) return { number, characters: 0, ok: false, reason: text };
    const [accountId = 0, corporateId = null] = [accounts[index], corporates[index]];
    const content = { type, data: new JsonText(text), accountId, corporateId };
    return { number, characters: text.length, ok: true, stream, content };
  });
}
