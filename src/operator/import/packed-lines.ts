import type { TransactionEventType } from '../../domain/transaction-events.ts';
import { JsonText } from '../../event-store/new-event.ts';
import type { NumberedLine } from '../lines/lines.ts';
import type { ImportedEvent } from './parse-line.ts';

/** Lines by column: what a thread hands to another is copied, and a row of five names costs more than its values. */
export interface PackedLines {
  readonly numbers: readonly number[];
  /** `null` where the line is refused, as are types. */
  readonly streams: readonly (string | null)[];
  readonly types: readonly (TransactionEventType | null)[];
  readonly accounts: readonly number[];
  readonly corporates: readonly (number | null)[];
  /** Why the line is refused. */
  readonly reasons: readonly (string | null)[];
  /** The data of all lines as JSON, one after the other, and where each one's ends. The buffer has nothing else. */
  readonly data: Uint8Array<ArrayBuffer>;
  readonly ends: readonly number[];
}

const NOTHING = new Uint8Array();

export function packLines(lines: readonly NumberedLine<ImportedEvent>[]): PackedLines {
  const parts = lines.map((line) => (line.ok ? line.content.data.bytes : NOTHING));
  const data = new Uint8Array(parts.reduce((bytes, { length }) => bytes + length, 0));
  let end = 0;
  const ends = parts.map((part) => {
    data.set(part, end);
    end += part.length;
    return end;
  });
  return {
    numbers: lines.map(({ number }) => number),
    streams: lines.map((line) => (line.ok ? line.stream : null)),
    types: lines.map((line) => (line.ok ? line.content.type : null)),
    accounts: lines.map((line) => (line.ok ? line.content.accountId : 0)),
    corporates: lines.map((line) => (line.ok ? line.content.corporateId : null)),
    reasons: lines.map((line) => (line.ok ? null : line.reason)),
    data,
    ends,
  };
}

export function unpackLines(packed: PackedLines): NumberedLine<ImportedEvent>[] {
  const { numbers, streams, types, accounts, corporates, reasons, data, ends } = packed;
  return numbers.map((number, index) => {
    const stream = streams[index] ?? null;
    const type = types[index] ?? null;
    if (stream === null || type === null)
      return { number, characters: 0, ok: false, reason: reasons[index] ?? '' };
    const [accountId = 0, corporateId = null] = [accounts[index], corporates[index]];
    const bytes = data.subarray(ends[index - 1] ?? 0, ends[index]);
    const content = { type, data: new JsonText(bytes), accountId, corporateId };
    return { number, characters: bytes.length, ok: true, stream, content };
  });
}
