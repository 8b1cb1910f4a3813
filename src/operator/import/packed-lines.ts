import { JsonText } from '../../event-store/new-event.ts';
import type { NumberedLine } from '../lines/lines.ts';
import type { ImportedEvent } from './parse-line.ts';

/** Lines as one thread hands them to another. Copying them as objects would cost more than parsing them. */
export interface PackedLines {
  /** The lines as JSON, without the data of their events. */
  readonly lines: string;
  /** The data of all events as JSON, one after the other. The buffer has nothing else. */
  readonly data: Uint8Array<ArrayBuffer>;
}

/** A line with the length of its event's data in place of the data. */
type PackedLine =
  | Exclude<NumberedLine<ImportedEvent>, { readonly ok: true }>
  | (Omit<Extract<NumberedLine<ImportedEvent>, { readonly ok: true }>, 'content'> & {
      readonly content: Omit<ImportedEvent, 'data'> & { readonly bytes: number };
    });

export function packLines(lines: readonly NumberedLine<ImportedEvent>[]): PackedLines {
  const parts: Uint8Array[] = [];
  const packed = lines.map((line): PackedLine => {
    if (!line.ok) return line;
    const { data, ...content } = line.content;
    parts.push(data.bytes);
    return { ...line, content: { ...content, bytes: data.bytes.length } };
  });
  const data = new Uint8Array(parts.reduce((bytes, { length }) => bytes + length, 0));
  let end = 0;
  for (const part of parts) {
    data.set(part, end);
    end += part.length;
  }
  return { lines: JSON.stringify(packed), data };
}

export function unpackLines({ lines, data }: PackedLines): NumberedLine<ImportedEvent>[] {
  let end = 0;
  return (JSON.parse(lines) as PackedLine[]).map((line): NumberedLine<ImportedEvent> => {
    if (!line.ok) return line;
    const { bytes, ...content } = line.content;
    const start = end;
    end += bytes;
    return { ...line, content: { ...content, data: new JsonText(data.subarray(start, end)) } };
  });
}
