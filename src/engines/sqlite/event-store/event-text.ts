import { assertStorable } from '../../../event-store/event-bounds.ts';
import type { NewEvent } from '../../../event-store/event-store.ts';
import { jsonUtf8 } from '../../../event-store/new-event.ts';

/** An event as the file has it. */
export interface EventText {
  readonly id: string;
  readonly type: string;
  /** UTF-8: often bytes that were read, which SQLite takes as they are. */
  readonly data: Uint8Array;
  readonly metadata: string;
}

/** Converts events of one append. Throws `ITEM_REFUSED` for one that could not be read again. */
export function textsOf(metadataText: (metadata: object) => string): (event: NewEvent) => EventText {
  return ({ id, type, ...event }) => {
    const [data, metadata] = [jsonUtf8(event.data), metadataText(event.metadata)];
    assertStorable({ type, dataBytes: data.length, metadataBytes: Buffer.byteLength(metadata) });
    return { id, type, data, metadata };
  };
}
