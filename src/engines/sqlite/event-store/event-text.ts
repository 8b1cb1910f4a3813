import { assertStorable } from '../../../event-store/event-bounds.ts';
import type { NewEvent } from '../../../event-store/event-store.ts';
import { jsonText } from '../../../event-store/new-event.ts';

/** An event as the file has it. */
export interface EventText {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** Converts events of one append. Throws `ITEM_REFUSED` for one that could not be read again. */
export function textsOf(metadataText: (metadata: object) => string): (event: NewEvent) => EventText {
  return ({ id, type, ...event }) => {
    const [data, metadata] = [jsonText(event.data), metadataText(event.metadata)];
    assertStorable({ type, dataBytes: Buffer.byteLength(data), metadataBytes: Buffer.byteLength(metadata) });
    return { id, type, data, metadata };
  };
}
